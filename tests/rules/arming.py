"""What is armed: update domains apart, in time, and with as many healthy machines as groups need (rule 4)."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from forewarn.core.basic_types import EventStatus, EventType, GroupName, Kind, MachineState
from forewarn.core.catalogue import ACTIONS
from forewarn.core.model.event import Event
from forewarn.core.model.slice import Slice
from tests.rules.change import MOVING, PLANNED, Change, newly_armed

SECOND = timedelta(seconds=1)


def update_domains_are_not_armed_together(change: Change) -> Iterator[str]:
    """Rule 4: platform work that can wait is not armed beside another update domain.

    Those of one host may be, where an operator said `together`, and an emergency may, beside anything: both
    are recorded as a broken promise. So may those of a gang, and as many Freezes as the group says.
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
            # What is done together was recorded when it was announced.
            together = order.terms.together and other.order == event.order
            said = event.id in broken or (together and event.id in change.before.events)
            if not said or not (together or order.terms.emergency):
                yield f"{event.id} was armed beside {other.id} of domain {other.update_domain}"


def _lets_freeze(fleet: Slice, *events: Event) -> bool:
    """Return whether events are Freezes, and all armed ones of their group within what that says."""
    group = events[0].group
    if any(event.type is not EventType.FREEZE for event in events):
        return False
    armed = (event for event in fleet.events.values() if event.group == group and event.armed_at is not None)
    frozen = sum(len(event.resources) for event in armed if event.type is EventType.FREEZE)
    return frozen <= fleet.groups[group].policy.freezes_at_once


def _was_armed_before(other: Event, event: Event, change: Change) -> bool:
    """Return whether one event kept others away when another was armed."""
    known = change.before.events.get(other.id)
    if other.armed_at is None or (known is not None and known.armed_at is not None):
        return other.armed_at is not None
    if known is None:
        return other.number < event.number or event.id in change.before.events
    # Both are armed now: if either had to wait for the other, it should have.
    return ACTIONS[change.after.orders[other.order].action].can_wait


def _by_group(fleet: Slice) -> Mapping[GroupName, list[Event]]:
    found: dict[GroupName, list[Event]] = {}
    for event in fleet.events.values():
        found.setdefault(event.group, []).append(event)
    return found


def events_are_armed_in_time(change: Change) -> Iterator[str]:
    """Rule 4: an event is armed once, before it starts.

    That is not before one event of its stage is approved or in its last minutes.
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
    """Return whether an event is approved, was refused before, has only its minimum left, or was armed."""
    known = change.before.events.get(event.id)
    if event.approved or event.postponed is not None or (known is not None and known.armed_at is not None):
        return True
    # NotBefore is a whole second.
    return event.not_before - change.now < change.policy.notice(event.type) + SECOND


def _starting_with(event: Event, fleet: Slice) -> list[Event]:
    """Return the events that start together with one, itself included; moves start by themselves."""
    if fleet.orders[event.order].stages[event.stage].kind in MOVING:
        return [event]
    mine = (each for each in fleet.events.values() if each.ended_at is None)
    return [each for each in mine if (each.order, each.stage) == (event.order, event.stage)]


def stages_are_armed_whole(change: Change) -> Iterator[str]:
    """Rule 4: events that start together are armed together or not at all."""
    for event in newly_armed(change):
        for other in _starting_with(event, change.after):
            if other.armed_at is None:
                yield f"{event.id} was armed without {other.id}, which starts together with it"


def budgets_are_heeded(change: Change) -> Iterator[str]:
    """Maintenance is armed only where groups keep as many healthy machines as they need."""
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
