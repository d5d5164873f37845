"""Plan the next wave of a rollout: which hosts may be announced now, and why the others wait.

The functions only decide: they neither place nor cancel orders, and they are idempotent. One wave is under
way at a time. The other waves are planned again after machines have moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.admission import announcing
from forewarn.core.basic_types import GroupName, HostName, OrderId
from forewarn.core.model.constraints import ArmedDomain, Waiting
from forewarn.core.model.rollout import Rollout, RolloutState, Wave, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health, waves
from forewarn.core.rollouts.candidates import Candidates
from forewarn.core.rollouts.progress import Orders, UnwellMachines, unfinished
from forewarn.core.time_formats import format_time

# How often to check whether a machine has polled again. Guests poll once a second.
LOOK_FOR_POLLS = timedelta(seconds=5)

_ONE_ARMED = ArmedDomain(events=1)


def rest_ends_at(rollout: Rollout) -> datetime | None:
    """Return when the rest after the last wave is over: the gap, or the soak time of the canaries."""
    rests = [
        wave.ended_at + waves.rest_after(rollout, wave.hosts, rollout.left)
        for wave in rollout.begun
        if wave.ended_at is not None
    ]
    return max(rests, default=None)


def is_ready(rollout: Rollout, *, now: datetime) -> bool:
    """Return whether the next wave may be chosen now."""
    going = rollout.open and rollout.state is RolloutState.RUNNING and not rollout.aborting
    resting = rest_ends_at(rollout)
    return going and not unfinished(rollout) and bool(rollout.left) and (resting is None or resting <= now)


def with_due_time(
    rollout: Rollout, orders: Orders, quiet: UnwellMachines = (), *, now: datetime, policy: Policy
) -> Rollout:
    """Set when to look at a rollout without a new wave again, unless an order changes before."""
    if rollout.state is not RolloutState.RUNNING or rollout.aborting:
        return replace(rollout, due_at=None)
    under_way = unfinished(rollout)
    if any(wave.state is WaveState.CHECKING for wave in under_way):
        return replace(rollout, due_at=now + LOOK_FOR_POLLS)
    if under_way:
        look_at = machine_health.next_limit(rollout, orders.values(), quiet, now=now, policy=policy)
        return replace(rollout, due_at=look_at)
    if quiet:
        waiting = tuple(
            Waiting(what=each.step.name, reason=f"{each.reason} since its work") for each in quiet
        )
        return replace(rollout, due_at=now + LOOK_FOR_POLLS, waiting=waiting)
    resting = rest_ends_at(rollout)
    if resting is None or resting <= now:
        return replace(rollout, due_at=None)
    return replace(rollout, due_at=resting, waiting=())


def next_wave(
    rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy
) -> tuple[Rollout, tuple[HostName, ...]]:
    """Plan the remaining waves again, and choose the hosts that may be announced now.

    If there is none, the rollout waits for the first window, or for a change of the fleet.
    """
    rollout = replan(_without_departed(rollout, survey), survey)
    if not rollout.left:
        return replace(rollout, blocked=False), ()
    candidates = Candidates(rollout, survey, policy)
    reasons = {host: candidates.why_not(host, now=now) for host in rollout.left}
    free = {host for host in rollout.left if not reasons[host]}
    chosen = waves.choose(rollout, rollout.planned, free, waves.limits_now(rollout, survey))
    if chosen:
        rest = waves.without(rollout.planned, chosen)
        rollout = replace(rollout, waves=(*rollout.begun, Wave(hosts=chosen), *rest))
    blocking = tuple(dict.fromkeys(why for host in rollout.left for why in reasons[host]))
    opening = (candidates.announce_at(host, now) for host in rollout.left)
    due_at = min((moment for moment in opening if moment is not None and moment > now), default=None)
    return replace(rollout, waiting=blocking, blocked=not chosen, due_at=due_at), chosen


def why_stuck(rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy) -> str:
    """Return why none of the next hosts can be announced without an operator's help, or ""."""
    candidates, ends = Candidates(rollout, survey, policy), []
    for host in waves.turn_of(rollout, rollout.left):
        stuck = [wait for wait in candidates.why_not(host, now=now) if wait.stuck]
        if not stuck:
            return ""
        ends += stuck
    return f"{ends[0]}" if ends else ""


def why_impossible(rollout: Rollout, survey: HostSurvey, *, now: datetime, policy: Policy) -> str:
    """Return why a rollout cannot go on with the present fleet, or ""."""
    rollout = _without_departed(rollout, survey)
    candidates = Candidates(rollout, survey, policy)
    for host in rollout.left:
        timing = candidates.timing(host)
        if timing.announce_at(now) is None:
            return "; ".join(map(str, timing.why_not_announce(host, now=now)))
    # The wave under way may free capacity for the others.
    return "" if unfinished(rollout) else why_stuck(rollout, survey, now=now, policy=policy)


def _without_departed(rollout: Rollout, survey: HostSurvey) -> Rollout:
    """Remove hosts that have left the fleet before their turn."""
    gone = {host for host in rollout.left if host not in survey.hosts}
    return replace(rollout, hosts=tuple(host for host in rollout.hosts if host not in gone))


def replan(rollout: Rollout, survey: HostSurvey) -> Rollout:
    """Plan the remaining waves again, unless they are still valid."""
    if waves.limits(rollout, survey).allow(rollout.planned, rollout.left):
        return rollout
    return replace(rollout, waves=(*rollout.begun, *waves.cut(rollout, survey, rollout.left)))


def begin(
    rollout: Rollout,
    placed: Mapping[HostName, OrderId],
    survey: HostSurvey,
    *,
    now: datetime,
    ends_about: datetime | None = None,
) -> Rollout:
    """Begin the first planned wave with the orders of its first hosts."""
    first, *rest = rollout.planned
    orders = tuple(placed[host] for host in first.hosts[: len(placed)])
    wave = replace(first, state=WaveState.ANNOUNCED, orders=orders, announced_at=now, ends_about=ends_about)
    conflicts = _conflicts(first, rest[0], survey) if rest else ()
    waiting = tuple(dict.fromkeys((*rollout.waiting, *conflicts)))
    return replace(rollout, waves=(*rollout.begun, wave, *rest), waiting=waiting)


def still_announceable(
    rollout: Rollout, hosts: Sequence[HostName], survey: HostSurvey, *, now: datetime, policy: Policy
) -> tuple[HostName, ...]:
    """Return the hosts of a begun wave that may still get orders. The fleet may have changed."""
    candidates = Candidates(rollout, survey, policy)
    there = (host for host in hosts if host in survey.hosts)
    return waves.limits_now(rollout, survey).pick(
        host for host in there if not candidates.why_not(host, now=now)
    )


def add_orders(
    rollout: Rollout, asked: Sequence[HostName], placed: Mapping[HostName, OrderId], *, now: datetime
) -> Rollout:
    """Add orders to the wave under way. Hosts that got no order return to the plan.

    A wave is announced with its first order. Without any order, the wave is dropped.
    """
    wave = rollout.begun[-1]
    announced_at = wave.announced_at if wave.orders else now
    hosts = tuple(host for host in wave.hosts if host not in asked or host in placed)
    orders = (*wave.orders, *(placed[host] for host in asked if host in placed))
    back = tuple(host for host in asked if host not in placed)
    first = (Wave(hosts=back),) if back else ()
    wave = replace(wave, hosts=hosts, orders=orders, announced_at=announced_at)
    this = (wave,) if hosts else ()
    return replace(rollout, waves=(*rollout.begun[:-1], *this, *first, *rollout.planned))


def _conflicts(wave: Wave, after: Wave, survey: HostSurvey) -> tuple[Waiting, ...]:
    """Return the groups of the next wave that wait for an update domain of this wave."""
    announced: dict[GroupName, dict[int, ArmedDomain]] = {}
    for host in wave.hosts:
        footprint = survey.footprint(host)
        for group in (each for each in footprint.counts if each not in footprint.free):
            announced.setdefault(group, dict.fromkeys(footprint.first_domains(group), _ONE_ARMED))
    waiting = (announcing.other_domains(survey.footprint(host), announced) for host in after.hosts)
    return tuple(dict.fromkeys(wait for some in waiting for wait in some))


def reasons(rollout: Rollout, *, now: datetime) -> tuple[Waiting, ...]:
    """Return why the hosts that have not begun wait, in the order of the waves."""
    if not rollout.open or rollout.aborting:
        return rollout.waiting
    begun, under_way = len(rollout.begun), unfinished(rollout)
    # Reasons date from the start of a wave. A window may have opened since.
    kept = tuple(wait for wait in rollout.waiting if wait.until is None or wait.until > now)
    turns = tuple(
        Waiting(what=host, reason=f"wave {number} waits for wave {number - 1}")
        for number, wave in enumerate(rollout.planned, start=begun + 1)
        # If no wave is under way, the next wave waits only for the other reasons.
        if number > begun + 1 or under_way
        for host in wave.hosts
    )
    resting = None if under_way or not rollout.planned else rest_ends_at(rollout)
    gap: tuple[Waiting, ...] = ()
    if resting is not None and resting > now:
        soaking = resting > max(wave.ended_at or now for wave in rollout.begun) + rollout.gap
        rest_ = "the soak time of the canaries" if soaking else f"the gap after wave {begun}"
        reason = f"wave {begun + 1} waits for {rest_}, until {format_time(resting)}"
        gap = tuple(Waiting(what=host, reason=reason, until=resting) for host in rollout.planned[0].hosts)
    return (*kept, *gap, *turns)
