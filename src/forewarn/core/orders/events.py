"""State changes of an event: announced, approved, deferred, armed, started, ended."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.admission.announcing import listing
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
from forewarn.core.policy import Notice, Policy
from forewarn.core.time_formats import format_span, format_time, round_up_to_second

# The shortest postponement, even if the expected work is shorter: each one changes the document.
SHORTEST_POSTPONEMENT = timedelta(minutes=1)
# Postponements grow with the time that an event has waited, up to this limit, so that it starts soon
# after the events that it waits for.
LONGEST_POSTPONEMENT = timedelta(minutes=30)


def armed_at_once(notice: Notice) -> bool:
    """Return whether an event with this notice is armed from its announcement."""
    return notice.ahead <= notice.least


def arm_at(event: Event, policy: Policy) -> datetime:
    """Return when only the minimum notice of an event is left."""
    return event.not_before - policy.notice(event.type)


def postponed_until(event: Event, *, now: datetime, policy: Policy) -> datetime:
    """Return the next NotBefore of an event that cannot be armed: the events in its way may be over then."""
    waited = timedelta() if event.postponed is None else event.not_before - event.postponed.since
    move = max(SHORTEST_POSTPONEMENT, policy.expected_work, min(waited, LONGEST_POSTPONEMENT))
    return round_up_to_second(max(event.not_before, now + policy.notice(event.type) + move))


def announce(
    draft: Draft, order: Order, index: int, steps: Iterable[Step], notice: Notice, *, armed: bool
) -> tuple[Event, ...]:
    """Announce steps of a stage, with one event for each update domain of each group (rule 3)."""
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
    """Record a broken promise for each group with several update domains in the order (rule 4)."""
    listed = draft.events_of(order.id)
    for event in announced:
        domains = sorted({other.update_domain for other in listed if other.group == event.group})
        if len(domains) > 1 and not draft.groups[event.group].policy.gang:
            which = f"update domains {listing(domains)} of {event.group}"
            why = f"{order.terms.together}: {which} are disturbed together"
            draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)


def _announce_to(
    draft: Draft, order: Order, index: int, share: Sequence[Step], notice: Notice, *, armed: bool
) -> Event:
    named = sorted(share, key=lambda step: (step.name.casefold(), step.name))
    policy = draft.groups[share[0].group].policy
    event = Event(
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
        rule=policy.approval,
    )
    draft.record(Kind.EVENT_SCHEDULED, event, by=order.by, reason=notice.description)
    if notice.ahead < notice.promised:
        ahead, promised = format_span(notice.ahead), format_span(notice.promised)
        why = f"{order.terms.emergency}: {ahead} of notice instead of {promised}"
        draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)
    draft.put_event(event)
    # Approvals that come with the order: its owner's, or that of the group's policy.
    if order.terms.at_once:
        return approve(draft, event, Approval(by=order.by, kind=ApprovedBy.PERSON, at=draft.now))
    if order.source is Source.USER and policy.auto_approve:
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
    """Defer all events of a stage because a guest of one event asks for more time.

    The events start together, so they move together. Each event can be deferred once. `latest` is the last
    permitted start: the order's deadline, or the end of a window.
    """
    until = _deferred_until(event, wanted, limit=draft.groups[event.group].policy.defer, latest=latest)
    for other in stage:
        later = max(other.not_before, until)
        if later != other.not_before:
            given = later - other.not_before
            asked = "" if wanted == given else f" ({format_span(wanted)} asked for)"
            granted = f"until {format_time(later)}: {format_span(given)} later{asked}"
            draft.record(Kind.EVENT_DEFERRED, other, by=by, reason=granted)
        deferral = Deferral(by=by, at=draft.now, until=later, since=other.not_before, asked=wanted)
        deferred = deferral if other.id == event.id else other.deferred
        draft.put_event(replace(other, not_before=later, deferred=deferred))


def _deferred_until(
    event: Event, wanted: timedelta, *, limit: timedelta, latest: datetime | None
) -> datetime:
    if not limit:
        raise Conflict(f"events of group {event.group} cannot be deferred")
    if event.status is not EventStatus.SCHEDULED:
        raise Conflict(f"event {event.id} is {event.status}, too late to defer it")
    if event.deferred is not None:
        raise Conflict(f"event {event.id} was deferred already by {event.deferred.by}")
    until = round_up_to_second(event.not_before + min(wanted, limit))
    if latest is None or until <= latest:
        return until
    until = latest.replace(microsecond=0)
    if until <= event.not_before:
        raise Conflict(f"event {event.id} cannot be deferred: it must start by {format_time(latest)}")
    return until


def approve(draft: Draft, event: Event, approval: Approval) -> Event:
    """Allow a scheduled event to start before its NotBefore.

    A second approval from the same source changes nothing. Nor does the approval of a recommendation, which
    never starts, or of an event that has started.
    """
    closed = event.hint or event.status is not EventStatus.SCHEDULED or not event.listed
    if closed or any((each.by, each.kind) == (approval.by, approval.kind) for each in event.approvals):
        return event
    draft.record(
        Kind.EVENT_APPROVED, event, by=approval.by, reason=f"{approval.kind} {approval.address}".strip()
    )
    return draft.put_event(replace(event, approvals=(*event.approvals, approval)))


def start(draft: Draft, event: Event, *, why: str) -> Event:
    """Mark an event Started. Its notice is judged when it ends."""
    draft.record(Kind.EVENT_STARTED, event, reason=why)
    return draft.put_event(replace(event, status=EventStatus.STARTED, started_at=draft.now))


def postpone(draft: Draft, event: Event, *, until: datetime, reason: str) -> Event:
    """Move the NotBefore of an event that cannot start yet; never to an earlier time."""
    later = max(round_up_to_second(until), event.not_before)
    moved = f"until {format_time(later)}: {format_span(later - event.not_before)} later, {reason}"
    draft.record(Kind.EVENT_POSTPONED, event, reason=moved)
    since = event.not_before if event.postponed is None else event.postponed.since
    postponed = Postponement(at=draft.now, since=since, reason=reason)
    return draft.put_event(replace(event, not_before=later, postponed=postponed))


def end(draft: Draft, event: Event, kind: Kind, *, why: str, by: str = "") -> Event:
    """Remove an event from the document, record why, and judge its notice."""
    draft.record(kind, event, by=by, reason=why)
    return draft.put_event(replace(notices.judge(draft, event), ended_at=draft.now, why=why))


def remove_machine(draft: Draft, event: Event, machine: MachineId, *, why: str) -> None:
    """Remove a machine from Resources. If no machine is left, the event ends."""
    left = tuple(named for named in event.resources if named.machine != machine)
    if len(left) == len(event.resources):
        return
    if not left:
        end(draft, event, Kind.EVENT_CANCELLED, why=why)
        return
    leaving = replace(event, resources=tuple(each for each in event.resources if each.machine == machine))
    draft.record(Kind.EVENT_LEFT, leaving, reason=why)
    notices.judge(draft, leaving)
    draft.put_event(replace(event, resources=left))


def announced_steps(event: Event, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps that an event announces. A later event may announce another step of a machine."""
    named = {resource.machine for resource in event.resources}
    announced = (step for step in steps if step.machine in named and WORKS[step.work].event is event.type)
    return tuple(step for step in announced if step.again_at is None or event.announced_at >= step.again_at)


def may_start_at(draft: Draft, event: Event) -> datetime:
    """Return when an event may start (rule 1): now if it is approved, otherwise at its NotBefore."""
    if event.approved:
        return draft.now
    grace = draft.grace
    if grace is not None and event.announced_at <= grace.announced_before:
        return max(event.not_before, grace.until)
    return event.not_before


def awaited_approvals(event: Event) -> str:
    """Name the machines whose approval a scheduled event still needs, or return ""."""
    if event.hint or event.approved or event.status is not EventStatus.SCHEDULED or not event.listed:
        return ""
    names = ", ".join(event.awaited)
    match event.rule:
        case ApprovalRule.ANY:
            return "any of its machines"
        case ApprovalRule.ALL:
            return names
        case ApprovalRule.LEADER:
            ignored = ", ".join(approval.by for approval in event.approvals)
            return f"the leader {names}" + (f"; the approval of {ignored} does not count" if ignored else "")
