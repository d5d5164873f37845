"""Events: status, resources, records and incarnations (rules 2, 3, 6 and 12)."""

from collections.abc import Iterator, Mapping

from forewarn.core.basic_types import HINTS, EventId, EventStatus, GroupName, Kind, StepState
from forewarn.core.model.slice import Slice
from tests.rules.change import Change, begun

LEFT = frozenset({Kind.EVENT_FINISHED, Kind.EVENT_CANCELLED, Kind.EVENT_WITHDRAWN})


def events_only_move_forward(change: Change) -> Iterator[str]:
    """Rule 2: a status never goes back, and NotBefore never moves to an earlier time."""
    for id_, event in change.after.events.items():
        known = change.before.events.get(id_)
        if known is None:
            continue
        if known.status is EventStatus.STARTED and event.status is EventStatus.SCHEDULED:
            yield f"{id_} went back to Scheduled"
        if event.not_before < known.not_before:
            yield f"{id_} was moved to an earlier time"


def departures_have_a_record(change: Change) -> Iterator[str]:
    """Rule 2: an event that leaves the document has a record with the reason."""
    written = {(record.event, record.kind): record for record in change.records}
    for id_, event in change.before.events.items():
        after = change.after.events.get(id_)
        if after is None and not any((id_, kind) in written and written[id_, kind].reason for kind in LEFT):
            yield f"{id_} left without a record"
        fewer = after is not None and len(after.resources) < len(event.resources)
        if fewer and (id_, Kind.EVENT_LEFT) not in written:
            yield f"a name left {id_} without a record"


def moved_times_have_a_record(change: Change) -> Iterator[str]:
    """Rule 4: NotBefore moves only because of a deferral or a postponement, and a record says why."""
    said = {(record.event, record.kind) for record in change.records if record.reason}
    for id_, event in change.after.events.items():
        known = change.before.events.get(id_)
        if known is None or known.not_before == event.not_before:
            continue
        if not said & {(id_, Kind.EVENT_POSTPONED), (id_, Kind.EVENT_DEFERRED)}:
            yield f"{id_} was moved from {known.not_before} to {event.not_before} without a record"


def resources_are_of_one_group_and_domain(change: Change) -> Iterator[str]:
    """Rule 3: an event has Resources, all of one group and one update domain."""
    for event in change.after.events.values():
        if not event.resources:
            yield f"{event.id} names no machine"
        for named in event.resources:
            machine = change.after.machines[named.machine]
            if (machine.group, machine.update_domain) != (event.group, event.update_domain):
                yield f"{event.id} names {named.name} of {machine.group}/{machine.update_domain}"


def recommendations_never_start(change: Change) -> Iterator[str]:
    """A recommendation is never started or approved, and has no step."""
    for event in change.after.events.values():
        if event.type not in HINTS:
            continue
        if event.status is not EventStatus.SCHEDULED or event.approvals:
            yield f"{event.id} is a recommendation, and is {event.status} with {event.approvals}"
        if change.after.orders[event.order].steps:
            yield f"{event.order} is a recommendation, and has steps"


def incarnations_count_changes(change: Change) -> Iterator[str]:
    """Rule 6: a group's incarnation increases by one if and only if its events change."""
    before, after = _seen(change.before), _seen(change.after)
    for name, group in change.after.groups.items():
        known = change.before.groups.get(name)
        if known is None:
            continue
        differs = before.get(name, {}) != after.get(name, {})
        if group.incarnation - known.incarnation != int(differs):
            yield f"{name} went from {known.incarnation} to {group.incarnation}, its events differ: {differs}"


def _seen(fleet: Slice) -> Mapping[GroupName, Mapping[EventId, object]]:
    """Return the fields of each group's events that guests see and that can change."""
    found: dict[GroupName, dict[EventId, object]] = {}
    for event in fleet.events.values():
        seen = (event.status, event.not_before, event.resources)
        found.setdefault(event.group, {})[event.id] = seen
    return found


def announced_work_needs_a_started_event(change: Change) -> Iterator[str]:
    """Rule 12: work that was announced to a machine does not begin without a started event."""
    shown = {
        (event.order, named.machine)
        for event in change.after.events.values()
        if event.status is EventStatus.STARTED
        for named in event.resources
    }
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        before = begun(known)
        for step in order.steps:
            begins = step.state is StepState.RUNNING and (step.machine, step.begun_at) not in before
            heard = (order.id, step.machine)
            if begins and heard in change.announced and heard not in shown:
                yield f"{step.name} was named in an event of {order.id}, which begins without one"
