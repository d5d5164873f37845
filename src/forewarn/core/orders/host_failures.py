"""Failures of hosts: which machines a failure recovers, and which machines other orders still work on."""

from collections.abc import Iterable, Iterator

from forewarn.core.basic_types import Action, HostName, HostState, MachineId, MachineName, StepState, Work
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step

# Work that starts a machine that runs nowhere else. The machine may run on the target of the step.
BRINGS_UP = frozenset({Work.RECOVER, Work.START})


def newest_failure(draft: Draft, host: HostName | None) -> Order | None:
    """Return the newest open failure of a host. Only this order recovers the machines still there."""
    failures = (
        order
        for order in draft.orders.values()
        if order.open and order.host == host and order.action is Action.FAIL
    )
    return max(failures, key=lambda each: each.number, default=None)


def is_superseded(draft: Draft, order: Order) -> bool:
    """Return whether the host has failed again. The older failure only finishes its running steps."""
    newest = newest_failure(draft, order.host) if order.action is Action.FAIL else None
    return newest is not None and newest.id != order.id


def machines_to_recover(draft: Draft, order: Order, there: Iterable[Machine]) -> Iterable[Machine]:
    """Return the machines that a failure recovers; machines that arrive after the restore are healthy."""
    if _failed_host(draft, order) is not None:
        gone = _departing(draft)
        return (machine for machine in there if machine.id not in gone)
    known = {step.machine for step in order.steps if step.state is not StepState.MOOT}
    return (machine for machine in there if machine.id in known)


def _departing(draft: Draft) -> dict[MachineId, Order]:
    """Return the machines that are being evicted or terminated, or recovered by a superseded failure."""
    return {
        step.machine: order
        for order in draft.orders.values()
        if order.open
        for step in _departing_steps(draft, order)
    }


def is_departing(order: Order) -> bool:
    """Return whether an eviction or termination has begun."""
    return ACTIONS[order.action].leaves and any(step.state in _BEGUN for step in order.steps)


_BEGUN = (StepState.RUNNING, StepState.DONE)


def _departing_steps(draft: Draft, order: Order) -> Iterator[Step]:
    if is_departing(order):
        yield from (step for step in order.steps if step.state in _BEGUN)
    elif is_superseded(draft, order):
        yield from order.running


def why_not_empty(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return the orders that still move machines off or onto a failed host.

    The failure recovers the machines that are on the host after these orders end.
    """
    coming = ((step.name, other) for other, step in steps_bound_for(draft, _failed_host(draft, order)))
    return tuple(
        Waiting(what=name, reason=f"waits for order {by.id} ({by.action}) to finish with it")
        for name, by in (*departing_machines(draft, order), *coming)
    )


def departing_machines(draft: Draft, order: Order) -> list[tuple[MachineName, Order]]:
    """Return the machines that are leaving a failed host, each with the order that removes it."""
    host = _failed_host(draft, order)
    there = () if host is None else draft.machines_on(host)
    gone = _departing(draft) if there else {}
    return [(machine.name, gone[machine.id]) for machine in there if machine.id in gone]


def _failed_host(draft: Draft, order: Order) -> HostName | None:
    """Return the host of a failure, or None if it was restored or has failed again."""
    host = draft.hosts.get(order.host) if order.host and order.action is Action.FAIL else None
    failed = host is not None and host.state is HostState.FAILED and not is_superseded(draft, order)
    return order.host if failed else None


def steps_bound_for(draft: Draft, host: HostName | None) -> list[tuple[Order, Step]]:
    """Return the running steps that move a machine to a host, each with its order."""
    running = ((order, step) for order in draft.orders.values() if order.open for step in order.running)
    return [(order, step) for order, step in running if step.target is not None and step.target == host]
