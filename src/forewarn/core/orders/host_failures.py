"""Failures of hosts: whom each concerns, and who is still in other hands when one comes."""

from collections.abc import Iterable, Iterator

from forewarn.core.basic_types import Action, HostName, HostState, MachineId, MachineName, StepState, Work
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step

# Work that brings a machine up that runs nowhere else: whoever knows its target knows where it may run.
BRINGS_UP = frozenset({Work.RECOVER, Work.START})


def newest_of(draft: Draft, host: HostName | None) -> Order | None:
    """Return the newest failure of a host that is not over: it alone recovers what is left there."""
    mine = (order for order in draft.orders.values() if order.open and order.host == host)
    return max(
        (each for each in mine if each.action is Action.FAIL), key=lambda each: each.number, default=None
    )


def is_superseded(draft: Draft, order: Order) -> bool:
    """Return whether the host of a failure has failed once more: only what runs of the older one goes on."""
    newest = newest_of(draft, order.host) if order.action is Action.FAIL else None
    return newest is not None and newest.id != order.id


def hit(draft: Draft, order: Order, there: Iterable[Machine]) -> Iterable[Machine]:
    """Return the machines that a failure recovers: those who come once their host is restored are well."""
    if _failed(draft, order) is not None:
        gone = departing(draft)
        return (machine for machine in there if machine.id not in gone)
    known = {step.machine for step in order.steps if step.state is not StepState.MOOT}
    return (machine for machine in there if machine.id in known)


def departing(draft: Draft) -> dict[MachineId, Order]:
    """Return the machines that are just leaving a host, and by which order.

    They are evicted, terminated, or recovered from a failure before the last. Who cannot leave stays.
    """
    going = (
        (order, step) for order in draft.orders.values() if order.open for step in _leaving(draft, order)
    )
    return {step.machine: order for order, step in going}


def is_departing(order: Order) -> bool:
    """Return whether an eviction or termination has begun: the machine goes, wherever it was."""
    return ACTIONS[order.action].leaves and any(step.state in _BEGUN for step in order.steps)


_BEGUN = (StepState.RUNNING, StepState.DONE)


def _leaving(draft: Draft, order: Order) -> Iterator[Step]:
    if is_departing(order):
        yield from (step for step in order.steps if step.state in _BEGUN)
    elif is_superseded(draft, order):
        yield from order.running


def not_empty(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return who leaves a failed host, or comes to it: whoever is there in the end is recovered."""
    coming = ((step.name, other) for other, step in bound_for(draft, _failed(draft, order)))
    return tuple(
        Waiting(what=name, reason=f"waits for order {by.id} ({by.action}) to finish with it")
        for name, by in (*leaving(draft, order), *coming)
    )


def leaving(draft: Draft, order: Order) -> list[tuple[MachineName, Order]]:
    """Return the machines that are just leaving a failed host, and by which order."""
    host = _failed(draft, order)
    there = () if host is None else draft.machines_on(host)
    gone = departing(draft) if there else {}
    return [(machine.name, gone[machine.id]) for machine in there if machine.id in gone]


def _failed(draft: Draft, order: Order) -> HostName | None:
    """Return the host of a failure, unless it is restored or has failed once more since."""
    host = draft.hosts.get(order.host) if order.host and order.action is Action.FAIL else None
    failed = host is not None and host.state is HostState.FAILED and not is_superseded(draft, order)
    return order.host if failed else None


def bound_for(draft: Draft, host: HostName | None) -> list[tuple[Order, Step]]:
    """Return the steps that are just moving a machine to a host from elsewhere, and whose they are."""
    running = ((order, step) for order in draft.orders.values() if order.open for step in order.running)
    return [(order, step) for order, step in running if step.target is not None and step.target == host]
