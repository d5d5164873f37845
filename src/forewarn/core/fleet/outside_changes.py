"""Machines as their source has them: what other hands have done to one is noticed, and its place follows.

What forewarn itself is doing is never taken for other hands, nor is what a source said before forewarn did
something. A failed step may itself have left its machine off, or defined nowhere: that is only said, until a
person decides on the order. A machine that runs elsewhere is followed. Where no event told the machine of
it, a record says so: that belongs to the proof of notice.
"""

from collections.abc import Iterable
from dataclasses import replace

from forewarn.core.basic_types import (
    OUTSIDE_FOREWARN,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.fleet import machines
from forewarn.core.fleet.fleet_changes import Hands, ObservedMachine
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.orders import departures
from forewarn.core.orders.steps import SETTLED

_AT_IT = (StepState.RUNNING, StepState.FAILED)


def hands(draft: Draft, machine: MachineId) -> Hands:
    """Return what forewarn has to do with a machine: two answers that differ mean that it did something."""
    return tuple(
        (order.id, step.attempt, step.state)
        for order in departures.open_orders_with(draft, machine)
        for step in order.steps
        if step.machine == machine and step.state in (StepState.WAITING, *_AT_IT)
    )


def _is_in_hand(draft: Draft, machine: Machine) -> bool:
    """Return whether a step of a machine is under way."""
    under_way = any(state is StepState.RUNNING for _, _, state in hands(draft, machine.id))
    return under_way or (machine.state not in SETTLED and failed_order(draft, machine) is None)


def failed_order(draft: Draft, machine: Machine) -> Order | None:
    """Return the order whose step of a machine has failed and waits for a person's decision."""
    failed = {order for order, _, state in hands(draft, machine.id) if state is StepState.FAILED}
    return next((order for order in departures.open_orders_with(draft, machine.id) if order.id in failed), None)


def is_kept_by_failure(draft: Draft, machine: Machine, seen: ObservedMachine) -> bool:
    """Return whether a machine is off or gone, and a failed step of it may be the cause."""
    is_down = seen.gone or (not seen.running and machine.state is not MachineState.STOPPED)
    followed = _is_old(draft, machine, seen) or _is_in_hand(draft, machine)
    return is_down and not followed and failed_order(draft, machine) is not None


def _can_follow(draft: Draft, host: HostName | None) -> bool:
    """Return whether a machine may be taken to be on a host: what failed is believed to carry nothing."""
    return host in draft.hosts and draft.hosts[host].state not in (HostState.FAILED, HostState.LOST)


def follow(draft: Draft, seen: Iterable[ObservedMachine], *, by: str) -> Iterable[str]:
    """Make machines what was seen of them, if that is other hands' doing; yield a line for each."""
    for each in seen:
        machine = draft.machines.get(each.before.id)
        what = None if machine is None else happened(draft, machine, each)
        if machine is None or what is None:
            continue
        if not _is_told(draft, machine):
            draft.record(Kind.UNANNOUNCED_IMPACT, machine, by=by, reason=f"{what} {OUTSIDE_FOREWARN}")
        if each.gone:
            machines.remove(draft, machine, by=by, why=f"{what} {OUTSIDE_FOREWARN}")
            yield f"- machine {machine.name}: {what} {OUTSIDE_FOREWARN}"
            continue
        _become(draft, machine, each, by=by)
        yield f"~ machine {machine.name}: {what} {OUTSIDE_FOREWARN}"


def _is_old(draft: Draft, machine: Machine, seen: ObservedMachine) -> bool:
    """Return whether something was done to a machine since its source was asked."""
    now, then = ((each.host, each.state, each.bound_for) for each in (machine, seen.before))
    return now != then or hands(draft, machine.id) != seen.hands


def happened(draft: Draft, machine: Machine, seen: ObservedMachine) -> str | None:
    """Say what other hands have done to a machine; None if nothing, or if it cannot be believed."""
    unknown = _is_old(draft, machine, seen) or _is_in_hand(draft, machine)
    if unknown or is_kept_by_failure(draft, machine, seen):
        return None
    if seen.gone:
        return "destroyed"
    if not seen.running:
        return None if machine.state is MachineState.STOPPED else f"stopped on {machine.host}"
    # It is on its way there by an order of forewarn's, though that has not begun.
    if not _can_follow(draft, seen.host) or seen.host == machine.bound_for:
        return None
    if machine.state is MachineState.STOPPED:
        return f"started on {seen.host}"
    return None if seen.host == machine.host else f"moved from {machine.host} to {seen.host}"


def _become(draft: Draft, machine: Machine, seen: ObservedMachine, *, by: str) -> None:
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


def _is_told(draft: Draft, machine: Machine) -> bool:
    """Return whether an event that names the machine says that something may happen to it by now."""
    return any(
        event.listed
        and not event.hint
        and (event.started_at is not None or event.not_before <= draft.now)
        and any(named.machine == machine.id for named in event.resources)
        for event in draft.events.values()
    )
