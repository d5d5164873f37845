"""What the plan of a rollout is worth a warning for: it goes otherwise than who asked for it may think."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from forewarn.core.admission.timing import FOR_EVER
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.moments import format_time
from forewarn.core.policy import Policy
from forewarn.core.rollouts import waves
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.forecast import Expected
from forewarn.core.rollouts.halves import HALF_OF_A_RACK, HALF_OF_THOSE_ALIKE, halves
from forewarn.core.words import GroupName, HostName

# Further warnings of one kind are counted; and of the hosts that come later so many are asked why.
MOST, LOOKED_AT = 5, 20
WINDOWS = "other hosts wait for the windows of their projects"


def warnings(
    rollout: Rollout, survey: HostSurvey, expected: Sequence[Expected], *, policy: Policy
) -> Iterator[str]:
    """Return what is unexpected about planned waves, and when they come."""
    yield from halved_waves(rollout, survey)
    yield from smaller_waves(rollout, survey)
    yield from cut_hosts(rollout, survey, expected, policy=policy)


def halved_waves(rollout: Rollout, survey: HostSurvey) -> Iterator[str]:
    """Say that waves were cut so that machines find hosts like theirs, if there would be fewer else."""
    whole = waves.unhalved(rollout, survey)
    if len(whole) < len(rollout.planned):
        racked = any(half.why == HALF_OF_A_RACK for its in halves(rollout, survey).values() for half in its)
        why = HALF_OF_A_RACK if racked else HALF_OF_THOSE_ALIKE
        yield f"{len(rollout.planned)} waves instead of {len(whole)}: {why}"


def smaller_waves(rollout: Rollout, survey: HostSurvey) -> Iterator[str]:
    """Say why waves have fewer hosts than may be done at once, though there are more."""
    planned, limits = rollout.planned, waves.limits(rollout, survey)
    hosts = list(chain.from_iterable(wave.hosts for wave in planned))
    canaries = frozenset(rollout.canaries)
    smaller: dict[str, int] = {}
    after = 0
    for wave in planned[:-1]:
        after += len(wave.hosts)
        others = hosts[after : after + LOOKED_AT]
        if not canaries.isdisjoint(wave.hosts):  # no others join them, whatever they carry
            others = [host for host in others if host in canaries]
        if len(wave.hosts) < rollout.hosts_at_once:
            for why in limits.why_no_more(wave.hosts, others):
                smaller[why or WINDOWS] = smaller.get(why or WINDOWS, 0) + 1
    fewer = f"fewer than {rollout.hosts_at_once} hosts"
    said = (
        f"{count} of {len(planned)} waves {'has' if count == 1 else 'have'} {fewer}: {why}"
        for why, count in sorted(smaller.items(), key=lambda item: -item[1])
    )
    return _first(said, "more reasons for smaller waves")


def cut_hosts(
    rollout: Rollout, survey: HostSurvey, expected: Sequence[Expected], *, policy: Policy
) -> Iterator[str]:
    """Say which hosts are cut by the end of a window: their later stages wait for the next one."""
    candidates = Candidates(rollout, survey, policy)
    cut = (
        (host, rest)
        for wave, times in zip(rollout.planned, expected, strict=False)
        for host in wave.hosts
        if (rest := candidates.rest_at(host, times.announce_at)) is not None
    )
    said = (
        f"{host} is cut by the end of a window: its next stage is announced "
        + ("only when windows change" if rest == FOR_EVER else f"at {format_time(rest)}")
        for host, rest in cut
    )
    return _first(said, "more hosts are cut by the end of a window")


def on_one_host(survey: HostSurvey) -> Sequence[str]:
    """Return a warning for each group that has every member on one host: no wave can spare it."""
    carrying: dict[GroupName, dict[HostName, int]] = {}
    for host, footprint in survey.footprints.items():
        for group, counts in footprint.counts.items():
            carrying.setdefault(group, {})[host] = sum(counts.values())
    return [
        f"group {group}: all {members} members are on {host}"
        for group, members in sorted(survey.sizes.items())
        for host, carried in carrying.get(group, {}).items()
        if carried == members and members > 1
    ]


def _first(said: Iterable[str], more: str) -> Iterator[str]:
    every = list(said)
    yield from every[:MOST]
    if len(every) > MOST:
        yield f"{len(every) - MOST} {more}"
