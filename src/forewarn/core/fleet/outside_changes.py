"""Changes to machines outside forewarn: an import or a driver notices them, and the fleet follows.

A change by forewarn itself does not count, nor does a report that is older than a change by forewarn. If a
machine is off or undefined, a failed step may be the cause: the import only says so, until a person decides
on the order. A machine that runs on another host is followed. If no event announced the change, a record
says so for the proof of notice.
"""

from collections.abc import Iterable
from dataclasses import replace

from forewarn.core.basic_types import OUTSIDE_FOREWARN, HostState, Kind, MachineId, MachineState, StepState
from forewarn.core.draft import Draft
from forewarn.core.fleet import machines
from forewarn.core.fleet.fleet_changes import ObservedMachine, StepStates
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.orders import departures
from forewarn.core.orders.steps import SETTLED


def open_steps(draft: Draft, machine: MachineId) -> StepStates:
    """Return the open steps of a machine; if the result differs later, forewarn did something in between."""
    return tuple(
        (order.id, step.attempt, step.state)
        for order in departures.open_orders_with(draft, machine)
        for step in order.steps
        if step.machine == machine and step.state in (StepState.WAITING, StepState.RUNNING, StepState.FAILED)
    )


def _is_under_way(draft: Draft, machine: Machine) -> bool:
    running = any(state is StepState.RUNNING for _, _, state in open_steps(draft, machine.id))
    return running or (machine.state not in SETTLED and failed_order(draft, machine) is None)


def failed_order(draft: Draft, machine: Machine) -> Order | None:
    """Return the order with a failed step of a machine that waits for a person's decision."""
    failed = {order for order, _, state in open_steps(draft, machine.id) if state is StepState.FAILED}
    return next(
        (order for order in departures.open_orders_with(draft, machine.id) if order.id in failed), None
    )


def may_be_failed_step(draft: Draft, machine: Machine, seen: ObservedMachine) -> bool:
    """Whether a machine is off or gone, and a failed step may be the cause."""
    is_down = seen.gone or (not seen.running and machine.state is not MachineState.STOPPED)
    followed = _is_stale(draft, machine, seen) or _is_under_way(draft, machine)
    return is_down and not followed and failed_order(draft, machine) is not None


def apply_reports(draft: Draft, seen: Iterable[ObservedMachine], *, by: str) -> Iterable[str]:
    """Apply the reported changes that were made outside forewarn; yield a line for each."""
    for each in seen:
        machine = draft.machines.get(each.before.id)
        if machine is None or (what := outside_change(draft, machine, each)) is None:
            continue
        if not _is_announced(draft, machine):
            draft.record(Kind.UNANNOUNCED_IMPACT, machine, by=by, reason=f"{what} {OUTSIDE_FOREWARN}")
        if each.gone:
            machines.remove(draft, machine, by=by, why=f"{what} {OUTSIDE_FOREWARN}")
            yield f"- machine {machine.name}: {what} {OUTSIDE_FOREWARN}"
            continue
        _update(draft, machine, each, by=by)
        yield f"~ machine {machine.name}: {what} {OUTSIDE_FOREWARN}"


def _is_stale(draft: Draft, machine: Machine, seen: ObservedMachine) -> bool:
    """Whether forewarn changed a machine, or worked on it, since its source was asked."""
    now, then = ((each.host, each.state, each.bound_for) for each in (machine, seen.before))
    return now != then or open_steps(draft, machine.id) != seen.open_steps


def outside_change(draft: Draft, machine: Machine, seen: ObservedMachine) -> str | None:
    """Describe a change that was made outside forewarn; None if there is none, or if that is uncertain."""
    unsure = _is_stale(draft, machine, seen) or _is_under_way(draft, machine)
    if unsure or may_be_failed_step(draft, machine, seen):
        return None
    if seen.gone:
        return "destroyed"
    if not seen.running:
        return None if machine.state is MachineState.STOPPED else f"stopped on {machine.host}"
    # Failed and lost hosts count as empty. A machine that is already on its target needs no correction.
    host = draft.hosts.get(seen.host) if seen.host is not None else None
    if host is None or host.state in (HostState.FAILED, HostState.LOST) or host.name == machine.bound_for:
        return None
    if machine.state is MachineState.STOPPED:
        return f"started on {seen.host}"
    return None if seen.host == machine.host else f"moved from {machine.host} to {seen.host}"


def _update(draft: Draft, machine: Machine, seen: ObservedMachine, *, by: str) -> None:
    if seen.running and machine.state is not MachineState.STOPPED and seen.host is not None:
        machines.move(draft, machine, seen.host, by=by)
        return
    if machine.host is not None:
        departures.remove_from_host_orders(draft, machine, why=f"stopped {OUTSIDE_FOREWARN}")
        departures.wake_undivided_orders(draft, machine.host)
    state, host = (MachineState.RUNNING, seen.host) if seen.running else (MachineState.STOPPED, None)
    changed = draft.put_machine(replace(draft.machines[machine.id], state=state, host=host))
    said = ", ".join(machines.differences(machine, changed))
    draft.record(Kind.MACHINE_CHANGED, changed, by=by, reason=f"{said}, {OUTSIDE_FOREWARN}")


def _is_announced(draft: Draft, machine: Machine) -> bool:
    """Whether a listed event announces work on the machine at this time."""
    return any(
        not event.hint and (event.started_at is not None or event.not_before <= draft.now)
        for event in machines.listed_events(draft, machine)
    )
