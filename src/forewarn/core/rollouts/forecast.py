"""Forecast the waves of a rollout, and warn about its plan."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import chain, zip_longest

from forewarn.core.admission.timing import FOR_EVER
from forewarn.core.basic_types import GroupName, HostName
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts import planning, waves
from forewarn.core.rollouts.candidates import Candidates, PlannedStages
from forewarn.core.rollouts.evacuation import HALF_OF_A_RACK, HALF_OF_INTERCHANGEABLE, evacuation_limits
from forewarn.core.time_formats import format_time

# Hosts planned together rarely need different times. If they do for this long, they need a new plan.
MOST_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a wave, or a stage of it, should be announced, start and end."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime
    stages: tuple["Expected", ...] = ()  # of a wave: each is announced after the one before


def forecast(
    rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy
) -> tuple[Rollout, tuple[Expected, ...]]:
    """Return the planned waves with their times. Windows decide which hosts go first.

    Hosts that no window has room for come last, without times.
    """
    candidates = Candidates(rollout, survey, policy)
    limits = waves.limits(rollout, survey)
    coming, at = rollout.planned, _free_at(rollout, now)
    found: list[Expected] = []
    planned: list[Wave] = []
    while coming:
        left = [host for wave in coming for host in wave.hosts]
        moments = {host: candidates.announce_at(host, at) for host in waves.turn_of(rollout, left)}
        possible = [moment for moment in moments.values() if moment is not None]
        if not possible:
            planned += coming
            break
        at = min(possible)
        free = {host for host, moment in moments.items() if moment == at}
        chosen = waves.choose(rollout, coming, free, limits)
        expected = _expected(chosen, candidates, at=at)
        planned.append(Wave(hosts=chosen))
        found.append(expected)
        coming = waves.without(coming, chosen)
        left = [host for wave in coming for host in wave.hosts]
        at = expected.end_at + waves.rest_after(rollout, chosen, left)
    return replace(rollout, waves=(*rollout.begun, *planned)), tuple(found)


def arrange_by_windows(rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy) -> Rollout:
    """Return a rollout with its planned waves in the order that the windows of its projects permit."""
    if all(project.calendar.always for project in survey.projects.values()):
        return rollout
    return forecast(rollout, survey, now=now, policy=policy)[0]


def wave_times(
    rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy
) -> tuple[Expected, ...]:
    """Return the times of the planned waves, up to a wave that no window has room for."""
    candidates, at = Candidates(rollout, survey, policy), _free_at(rollout, now)
    found: list[Expected] = []
    left = list(rollout.left)
    for wave in rollout.planned:
        together = _together_at(wave.hosts, candidates, at)
        if together is None:
            break
        found.append(_expected(wave.hosts, candidates, at=together))
        taken = frozenset(wave.hosts)
        left = [host for host in left if host not in taken]
        at = found[-1].end_at + waves.rest_after(rollout, wave.hosts, left)
    return tuple(found)


def _together_at(hosts: Sequence[HostName], candidates: Candidates, at: datetime) -> datetime | None:
    """Return the first time at which all these hosts may be announced; None if there is none soon."""
    for _ in range(MOST_TRIES):
        moments = [candidates.announce_at(host, at) for host in hosts]
        known = [moment for moment in moments if moment is not None]
        if len(known) < len(moments):
            return None
        latest = max(known, default=at)
        if latest == at:
            return at
        at = latest
    return None


def with_first_wave_begun(rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy) -> Rollout:
    """Return a planned rollout with its first wave begun, before its orders are placed.

    If no host may be announced now, the rollout waits, with its reasons.
    """
    rollout, chosen = planning.next_wave(rollout, survey, now=now, policy=policy)
    if not chosen:
        return rollout
    ends = ends_about(rollout, chosen, survey, now=now, policy=policy)
    rollout = planning.begin(rollout, {}, survey, now=now, ends_about=ends)
    return arrange_by_windows(rollout, survey, now=now, policy=policy)


def ends_about(
    rollout: Rollout, hosts: Iterable[HostName], survey: HostSurvey, *, now: datetime, policy: Policy
) -> datetime:
    """Return when a wave of these hosts should end if it is announced now."""
    return _expected(hosts, Candidates(rollout, survey, policy), at=now).end_at


def _free_at(rollout: Rollout, now: datetime) -> datetime:
    """Return when the next wave may be announced: after the current one and its rest."""
    free = (
        (wave.ended_at or max(wave.ends_about or now, now))
        + waves.rest_after(rollout, wave.hosts, rollout.left)
        for wave in rollout.begun
    )
    return max(now, max(free, default=now))


def _expected(hosts: Iterable[HostName], candidates: Candidates, *, at: datetime) -> Expected:
    """Return the times of a wave that is announced at `at`. The slowest host decides."""
    shapes = dict.fromkeys(map(candidates.stages, hosts))
    each = [tuple(_stages(stages, at=at)) for stages in shapes]
    together = ((stage for stage in level if stage is not None) for level in zip_longest(*each))
    stages = [reduce(_slower, level) for level in together]
    return Expected(
        announce_at=at,
        start_at=stages[0].start_at if stages else at,
        end_at=max((stage.end_at for stage in stages), default=at),
        stages=tuple(stages),
    )


def _stages(stages: PlannedStages, *, at: datetime) -> Iterator[Expected]:
    """Yield the times of the stages of one host."""
    for stage, timing in stages:
        at = timing.announce_at(at) or at
        start = timing.not_before(at)
        end = start + stage.lasting
        yield Expected(announce_at=at, start_at=start, end_at=end)
        at = end


def _slower(one: Expected, other: Expected) -> Expected:
    return Expected(
        announce_at=min(one.announce_at, other.announce_at),
        start_at=max(one.start_at, other.start_at),
        end_at=max(one.end_at, other.end_at),
    )


# How many warnings of one kind are listed, the rest being counted; how many later hosts are examined.
MOST, LOOKED_AT = 5, 20
WINDOWS = "other hosts wait for the windows of their projects"


def warnings(
    rollout: Rollout, survey: HostSurvey, expected: Sequence[Expected], *, policy: Policy
) -> Iterator[str]:
    """Yield warnings about the number, size and times of the planned waves."""
    yield from more_waves_to_empty(rollout, survey)
    yield from smaller_waves(rollout, survey)
    yield from cut_hosts(rollout, survey, expected, policy=policy)


def more_waves_to_empty(rollout: Rollout, survey: HostSurvey) -> Iterator[str]:
    """Warn if evacuation limits cause more waves."""
    whole = waves.without_evacuation_limits(rollout, survey)
    if len(whole) < len(rollout.planned):
        racked = any(
            limit.why == HALF_OF_A_RACK
            for limits in evacuation_limits(rollout, survey).values()
            for limit in limits
        )
        why = HALF_OF_A_RACK if racked else HALF_OF_INTERCHANGEABLE
        yield f"{len(rollout.planned)} waves instead of {len(whole)}: {why}"


def smaller_waves(rollout: Rollout, survey: HostSurvey) -> Iterator[str]:
    """Warn if waves have fewer hosts than the limit, and explain why."""
    planned, limits = rollout.planned, waves.limits(rollout, survey)
    hosts = list(chain.from_iterable(wave.hosts for wave in planned))
    canaries = frozenset(rollout.canaries)
    smaller: dict[str, int] = {}
    after = 0
    for wave in planned[:-1]:
        after += len(wave.hosts)
        others = hosts[after : after + LOOKED_AT]
        if not canaries.isdisjoint(wave.hosts):  # only canaries join canaries
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
    """Warn about hosts whose later stages wait for another window."""
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
    """Return a warning for each group with all its members on one host."""
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
