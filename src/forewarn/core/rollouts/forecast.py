"""When the waves of a rollout are to be expected if no guest approves early and nothing is in the way."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import zip_longest

from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.survey import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts import waves
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.words import GroupName, HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a wave, or a stage of it, is announced, started and over."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime
    stages: tuple["Expected", ...] = ()  # of a wave: the next one is announced when one is over


def forecast(
    rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy
) -> tuple[Rollout, tuple[Expected, ...]]:
    """Return the planned waves, and when each is to be expected; windows decide which hosts go first.

    Hosts that no window ever has room for come last, and nothing is expected of them.
    """
    candidates = Candidates(rollout, survey, policy)
    limits = waves.limits(rollout, survey)
    left, at = list(rollout.left), _free_at(rollout, now)
    found: list[Expected] = []
    planned: list[Wave] = []
    while left:
        moments = {host: candidates.timing(host).announce_at(at) for host in left}
        possible = [moment for moment in moments.values() if moment is not None]
        if not possible:
            planned += limits.cut(left)
            break
        at = min(possible)
        free = [host for host in left if moments[host] == at]
        chosen = limits.pick(free)
        expected = _expected(chosen, survey, candidates, at=at, policy=policy)
        planned.append(Wave(hosts=chosen))
        found.append(expected)
        at = expected.end_at + rollout.gap
        taken = set(chosen)
        left = [host for host in left if host not in taken]
    return replace(rollout, waves=(*rollout.begun, *planned)), tuple(found)


def ends_about(
    rollout: Rollout, hosts: Iterable[HostName], survey: HostSurvey, *, now: datetime, policy: Policy
) -> datetime:
    """Return when a wave of these hosts is over that is announced now."""
    return _expected(hosts, survey, Candidates(rollout, survey, policy), at=now, policy=policy).end_at


def _free_at(rollout: Rollout, now: datetime) -> datetime:
    """Return when the next wave may come: after the one that is under way, and after the gap."""
    ends = (wave.ended_at or max(wave.ends_about or now, now) for wave in rollout.begun)
    return max(now, max((end + rollout.gap for end in ends), default=now))


def _expected(
    hosts: Iterable[HostName], survey: HostSurvey, candidates: Candidates, *, at: datetime, policy: Policy
) -> Expected:
    """Return when a wave that is announced at a moment starts and ends: the slowest host decides."""
    each = [tuple(_stages(host, survey, candidates, at=at, policy=policy)) for host in hosts]
    together = ((stage for stage in level if stage is not None) for level in zip_longest(*each))
    stages = [reduce(_slower, level) for level in together]
    return Expected(
        announce_at=at,
        start_at=stages[0].start_at if stages else at,
        end_at=max((stage.end_at for stage in stages), default=at),
        stages=tuple(stages),
    )


def _stages(
    host: HostName, survey: HostSurvey, candidates: Candidates, *, at: datetime, policy: Policy
) -> Iterator[Expected]:
    """Yield when each stage of a host's order is to be expected."""
    timing = candidates.timing(host)
    for _ in range(survey.footprint(host).stages):
        at = timing.announce_at(at) or at
        start = timing.not_before(at)
        # However short the work is, events stay listed for so long after their start.
        end = start + max(policy.linger, candidates.work)
        yield Expected(announce_at=at, start_at=start, end_at=end)
        at = end


def _slower(one: Expected, other: Expected) -> Expected:
    return Expected(
        announce_at=min(one.announce_at, other.announce_at),
        start_at=max(one.start_at, other.start_at),
        end_at=max(one.end_at, other.end_at),
    )


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
