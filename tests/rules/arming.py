"""Rule 4: armed update domains, the time of arming, and budgets of healthy machines."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from forewarn.core.basic_types import EventStatus, EventType, GroupName, Kind, MachineState
from forewarn.core.catalogue import ACTIONS
from forewarn.core.model.event import Event
from forewarn.core.model.slice import Slice
from tests.rules.change import MOVING, PLANNED, Change, newly_armed

SECOND = timedelta(seconds=1)


def update_domains_are_not_armed_together(change: Change) -> Iterator[str]:
    """Rule 4: platform work that can wait is not armed while another update domain is.

    Exceptions are `together` for the domains of one host, and an emergency; a record of a broken promise
    mentions both. Further exceptions are gangs, and as many Freezes as the group allows at once.
    """
    by_group = _by_group(change.after)
    broken = {record.event for record in change.records if record.kind == Kind.PROMISE_BROKEN}
    for event in newly_armed(change):
        order = change.after.orders[event.order]
        if not ACTIONS[order.action].can_wait:
            continue
        for other in by_group[event.group]:
            if other.update_domain == event.update_domain or not _was_armed_before(other, event, change):
                continue
            if _lets_freeze(change.after, event, other) or change.after.groups[event.group].policy.gang:
                continue
            # Work with `together` was recorded when it was announced.
            together = order.terms.together and other.order == event.order
            said = event.id in broken or (together and event.id in change.before.events)
            if not said or not (together or order.terms.emergency):
                yield f"{event.id} was armed while {other.id} of domain {other.update_domain} was"


def _lets_freeze(fleet: Slice, *events: Event) -> bool:
    """Whether events are Freezes, and the armed Freezes of their group are within its limit."""
    group = events[0].group
    if any(event.type is not EventType.FREEZE for event in events):
        return False
    armed = (event for event in fleet.events.values() if event.group == group and event.armed_at is not None)
    frozen = sum(len(event.resources) for event in armed if event.type is EventType.FREEZE)
    return frozen <= fleet.groups[group].policy.freezes_at_once


def _was_armed_before(other: Event, event: Event, change: Change) -> bool:
    """Whether one event was armed before another, or should have waited for it."""
    known = change.before.events.get(other.id)
    if other.armed_at is None or (known is not None and known.armed_at is not None):
        return other.armed_at is not None
    if known is None:
        return other.number < event.number or event.id in change.before.events
    # Both were armed by this change, so an event that can wait should have waited for the other.
    return ACTIONS[change.after.orders[other.order].action].can_wait


def _by_group(fleet: Slice) -> Mapping[GroupName, list[Event]]:
    found: dict[GroupName, list[Event]] = {}
    for event in fleet.events.values():
        found.setdefault(event.group, []).append(event)
    return found


def events_are_armed_in_time(change: Change) -> Iterator[str]:
    """Rule 4: an event is armed once, before it starts.

    One event of its stage must be approved or have only its minimum notice left.
    """
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.status is EventStatus.STARTED and event.armed_at is None:
            yield f"{event.id} started and was not armed"
        if known is not None and known.armed_at not in (None, event.armed_at):
            yield f"{event.id} was armed at {known.armed_at}, and is armed at {event.armed_at}"
    for event in newly_armed(change):
        if not any(_is_time(each, change) for each in _starting_with(event, change.after)):
            yield f"{event.id} was armed {event.not_before - change.now} before its NotBefore"


def _is_time(event: Event, change: Change) -> bool:
    """Whether an event may be armed: it is approved, postponed or armed already, or has its minimum left."""
    known = change.before.events.get(event.id)
    if event.approved or event.postponed is not None or (known is not None and known.armed_at is not None):
        return True
    # NotBefore is rounded up to a whole second.
    return event.not_before - change.now < change.policy.notice(event.type) + SECOND


def _starting_with(event: Event, fleet: Slice) -> list[Event]:
    """Return the events that start together with an event, including itself; moves start one by one."""
    if fleet.orders[event.order].stages[event.stage].kind in MOVING:
        return [event]
    mine = (each for each in fleet.events.values() if each.ended_at is None)
    return [each for each in mine if (each.order, each.stage) == (event.order, event.stage)]


def stages_are_armed_completely(change: Change) -> Iterator[str]:
    """Rule 4: events that start together are armed together or not at all."""
    for event in newly_armed(change):
        for other in _starting_with(event, change.after):
            if other.armed_at is None:
                yield f"{event.id} was armed without {other.id}, which starts together with it"


def budgets_are_respected(change: Change) -> Iterator[str]:
    """Maintenance is armed only if each group keeps its budget of healthy machines."""
    disturbing = (event for event in change.after.events.values() if event.armed_at is not None)
    named = {named.machine for event in disturbing for named in event.resources}
    for event in newly_armed(change):
        order, group = change.after.orders[event.order], change.after.groups[event.group]
        mine = order.action in PLANNED and not order.terms.emergency
        if not mine or not group.policy.budget:
            continue
        members = (machine for machine in change.after.machines.values() if machine.group == group.name)
        well = [each for each in members if each.state is MachineState.RUNNING and each.id not in named]
        if len(well) < group.policy.budget:
            yield f"{event.id} leaves {group.name} {len(well)} healthy, it needs {group.policy.budget}"
