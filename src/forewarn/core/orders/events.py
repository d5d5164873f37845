"""The life of an event: announced, approved, deferred, armed, started, ended; and machines that leave it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    ApprovalRule,
    ApprovedBy,
    EventId,
    EventStatus,
    GroupName,
    Kind,
    MachineId,
    MachineName,
    Source,
)
from forewarn.core.catalogue import WORKS
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.guests import notice as notices
from forewarn.core.model.event import Approval, Deferral, Event, Postponement, Resource
from forewarn.core.model.order import Order, Step
from forewarn.core.time_formats import format_span, format_time, round_up_to_second
from forewarn.core.policy import Notice, Policy

# However short work is said to be: an event that is looked at again and again is no better off.
LEAST_MOVE = timedelta(minutes=1)
# An event that has waited for long is moved further each time, but not beyond what others may wait for it.
LONGEST_MOVE = timedelta(minutes=30)


def armed_at_once(notice: Notice) -> bool:
    """Return whether what is announced so is armed at once."""
    return notice.ahead <= notice.least


def arm_at(event: Event, policy: Policy) -> datetime:
    """Return when only the minimum is left of an event's notice."""
    return event.not_before - policy.notice(event.type)


def is_ready(event: Event, *, now: datetime, policy: Policy) -> bool:
    """Return whether an event is to be armed, if nobody keeps it from that.

    One that was refused before is ready whenever it is looked at: it has waited long enough.
    """
    return event.approved or event.postponed is not None or arm_at(event, policy) <= now


def postponed_until(event: Event, *, now: datetime, policy: Policy) -> datetime:
    """Return the NotBefore of an event that cannot be armed now: by then those it waits for may be over."""
    waited = timedelta() if event.postponed is None else event.not_before - event.postponed.since
    move = max(LEAST_MOVE, policy.expected_work, min(waited, LONGEST_MOVE))
    return round_up_to_second(max(event.not_before, now + policy.notice(event.type) + move))


def announce(
    draft: Draft, order: Order, index: int, steps: Iterable[Step], notice: Notice, *, armed: bool
) -> tuple[Event, ...]:
    """Announce the steps of a stage to their groups, one event for each update domain (rule 3)."""
    shares: dict[tuple[GroupName, int], list[Step]] = defaultdict(list)
    for step in steps:
        shares[step.group, step.update_domain].append(step)
    announced = tuple(
        _announce_to(draft, order, index, shares[share], notice, armed=armed) for share in sorted(shares)
    )
    if order.terms.together:
        _record_together(draft, order, announced)
    return announced


def _record_together(draft: Draft, order: Order, announced: Sequence[Event]) -> None:
    """Record rule 4 as broken for the groups of which several update domains are announced together."""
    listed = draft.events_of(order.id)
    for event in announced:
        domains = sorted({other.update_domain for other in listed if other.group == event.group})
        if len(domains) > 1 and not draft.groups[event.group].policy.gang:
            *most, last = domains
            which = f"{', '.join(map(str, most))} and {last}"
            why = f"{order.terms.together}: update domains {which} of {event.group} are disturbed together"
            draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)


def _announce_to(
    draft: Draft, order: Order, index: int, share: Sequence[Step], notice: Notice, *, armed: bool
) -> Event:
    event = _event(draft, order, index, share, notice, armed=armed)
    draft.record(Kind.EVENT_SCHEDULED, event, by=order.by, reason=notice.description)
    if notice.ahead < notice.promised:
        ahead, promised = format_span(notice.ahead), format_span(notice.promised)
        why = f"{order.terms.emergency}: {ahead} of notice instead of {promised}"
        draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)
    draft.put_event(event)
    return _approved_already(draft, order, event)


def _event(
    draft: Draft, order: Order, index: int, share: Sequence[Step], notice: Notice, *, armed: bool
) -> Event:
    named = sorted(share, key=lambda step: (step.name.casefold(), step.name))
    return Event(
        id=EventId(draft.new_id()),
        number=draft.number + 1,
        order=order.id,
        stage=index,
        group=share[0].group,
        update_domain=share[0].update_domain,
        type=notice.type,
        status=EventStatus.SCHEDULED,
        source=notice.source,
        description=notice.description,
        duration_seconds=notice.duration_seconds,
        resources=tuple(Resource(machine=step.machine, name=step.name) for step in named),
        announced_at=draft.now,
        not_before=round_up_to_second(draft.now + notice.ahead),
        armed_at=draft.now if armed else None,
        rule=draft.groups[share[0].group].policy.approval,
    )


def _approved_already(draft: Draft, order: Order, event: Event) -> Event:
    """Add the approvals that come with an order: its owner's own, or that of the group's policy."""
    if order.terms.at_once:
        return approve(draft, event, Approval(by=order.by, kind=ApprovedBy.PERSON, at=draft.now))
    if order.source is Source.USER and draft.groups[event.group].policy.auto_approve:
        return approve(draft, event, Approval(by="policy", kind=ApprovedBy.POLICY, at=draft.now))
    return event


def defer(
    draft: Draft,
    stage: Sequence[Event],
    event: Event,
    *,
    by: MachineName,
    wanted: timedelta,
    latest: datetime | None,
) -> None:
    """Defer a stage because a guest of one of its events asks for more time; each event once.

    All events of the stage move together, for they start together; `latest` is the last moment at which
    they may: the order's deadline, or the end of a window.
    """
    until = _deferred_until(event, wanted, limit=draft.groups[event.group].policy.defer, latest=latest)
    for other in stage:
        later = max(other.not_before, until)
        if later != other.not_before:
            granted = _granted(later, given=later - other.not_before, asked=wanted)
            draft.record(Kind.EVENT_DEFERRED, other, by=by, reason=granted)
        deferral = Deferral(by=by, at=draft.now, until=later, since=other.not_before, asked=wanted)
        mine = deferral if other.id == event.id else other.deferred
        draft.put_event(replace(other, not_before=later, deferred=mine))


def _deferred_until(
    event: Event, wanted: timedelta, *, limit: timedelta, latest: datetime | None
) -> datetime:
    if not limit:
        raise Conflict(f"events of group {event.group} cannot be put off")
    if event.status is not EventStatus.SCHEDULED:
        raise Conflict(f"event {event.id} is {event.status}, too late to put it off")
    if event.deferred is not None:
        raise Conflict(f"event {event.id} was put off already by {event.deferred.by}")
    until = round_up_to_second(event.not_before + min(wanted, limit))
    if latest is None or until <= latest:
        return until
    until = latest.replace(microsecond=0)
    if until <= event.not_before:
        raise Conflict(f"event {event.id} cannot be put off: it must start by {format_time(latest)}")
    return until


def _granted(until: datetime, *, given: timedelta, asked: timedelta) -> str:
    """Write how far an event was deferred, and what was asked for if that was more or less."""
    wished = "" if asked == given else f" ({format_span(asked)} asked for)"
    return f"until {format_time(until)}: {format_span(given)} later{wished}"


def approve(draft: Draft, event: Event, approval: Approval) -> Event:
    """Let a scheduled event start before its time.

    Approving twice is not an error: any machine of the group may answer, and the first answer counts
    for all of them.
    """
    late = event.status is not EventStatus.SCHEDULED or not event.listed
    # A hint needs no approval; a guest that gives it all the same is not refused.
    if (
        event.hint
        or late
        or any(known.by == approval.by and known.kind is approval.kind for known in event.approvals)
    ):
        return event
    draft.record(
        Kind.EVENT_APPROVED, event, by=approval.by, reason=f"{approval.kind} {approval.address}".strip()
    )
    return draft.put_event(replace(event, approvals=(*event.approvals, approval)))


def start(draft: Draft, event: Event, *, why: str) -> Event:
    """Mark an event Started; whether its machines were told in time is judged when it ends."""
    draft.record(Kind.EVENT_STARTED, event, reason=why)
    return draft.put_event(replace(event, status=EventStatus.STARTED, started_at=draft.now))


def postpone(draft: Draft, event: Event, *, until: datetime, reason: str) -> Event:
    """Move the NotBefore of an event that cannot start yet, never to an earlier time."""
    later = max(round_up_to_second(until), event.not_before)
    moved = f"until {format_time(later)}: {format_span(later - event.not_before)} later, {reason}"
    draft.record(Kind.EVENT_POSTPONED, event, reason=moved)
    since = event.not_before if event.postponed is None else event.postponed.since
    postponed = Postponement(at=draft.now, since=since, reason=reason)
    return draft.put_event(replace(event, not_before=later, postponed=postponed))


def cause(event: Event) -> str:
    """Write why an event starts."""
    return f"approved by {event.approvals[0].by}" if event.approved else "NotBefore has passed"


def stale(announced: Sequence[Event]) -> str:
    """Write why events are withdrawn that could not start in time."""
    first = min(event.not_before for event in announced)
    return f"could not start within the limit after {first:%H:%M:%S}; announced anew"


def end(draft: Draft, event: Event, kind: Kind, *, why: str, by: str = "") -> Event:
    """Take an event out of the document, with a record of why, and judge whether it was told in time."""
    draft.record(kind, event, by=by, reason=why)
    return draft.put_event(replace(notices.judge(draft, event), ended_at=draft.now, why=why))


def take_out(draft: Draft, event: Event, machine: MachineId, *, why: str) -> None:
    """Take a machine's name out of an event; the last name takes the event with it."""
    left = tuple(named for named in event.resources if named.machine != machine)
    if len(left) == len(event.resources):
        return
    if not left:
        end(draft, event, Kind.EVENT_CANCELLED, why=why)
        return
    leaving = replace(event, resources=_only(event, machine))
    draft.record(Kind.EVENT_LEFT, leaving, reason=why)
    notices.judge(draft, leaving)
    draft.put_event(replace(event, resources=left))


def told_by(event: Event, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps that an event is the notice of: a machine of it may have another one, later."""
    named = {resource.machine for resource in event.resources}
    mine = (step for step in steps if step.machine in named and WORKS[step.work].event is event.type)
    return tuple(step for step in mine if step.again_at is None or event.announced_at >= step.again_at)


def may_start_at(draft: Draft, event: Event) -> datetime:
    """Return from when on an event may start (rule 1): now if it is approved, else its NotBefore."""
    if event.approved:
        return draft.now
    grace = draft.grace
    if grace is not None and event.announced_at <= grace.announced_before:
        return max(event.not_before, grace.until)
    return event.not_before


def awaited_approvals(event: Event) -> str:
    """Write whose approval a scheduled event still needs; nothing if none."""
    if event.hint or event.approved or event.status is not EventStatus.SCHEDULED or not event.listed:
        return ""
    names = ", ".join(event.awaited)
    match event.rule:
        case ApprovalRule.ANY:
            return "any of its machines"
        case ApprovalRule.ALL:
            return names
        case ApprovalRule.LEADER:
            in_vain = ", ".join(approval.by for approval in event.approvals)
            return f"the leader {names}" + (f"; the word of {in_vain} does not count" if in_vain else "")


def _only(event: Event, machine: MachineId) -> tuple[Resource, ...]:
    return tuple(named for named in event.resources if named.machine == machine)
