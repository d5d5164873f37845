"""Machines that leave an order, a host or the fleet, and orders and events that end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    GroupKind,
    HostName,
    Kind,
    MachineId,
    MachineState,
    OrderId,
    OrderState,
    StageState,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import events, host_steps, stages, steps
from forewarn.core.policy import Policy
from forewarn.core.time_formats import format_time


def remove_from_scheduled(draft: Draft, machine: Machine, *, why: str, keep: OrderId) -> None:
    """Remove a machine from all orders that have not started work on it, except one.

    A host failure keeps its machines: without it, a machine could start before the host is fenced.
    """
    for order in open_orders_with(draft, machine.id):
        kept = order.id == keep or order.action is Action.FAIL
        if not kept and not _under_way(order, machine.id):
            remove_machine(draft, order, machine.id, why=why)


def remove_from_host_orders(draft: Draft, machine: Machine, *, why: str, keep: OrderId | None = None) -> None:
    """Remove a machine that has left its host from the orders on that host, unless its step has begun."""
    for order in open_orders_with(draft, machine.id):
        on_host = order.host is not None and order.host == machine.host
        if on_host and order.id != keep and not _under_way(order, machine.id):
            remove_machine(draft, order, machine.id, why=why)


def remove_from_other_hosts(draft: Draft, machine: Machine, *, why: str) -> None:
    """Remove a machine of a failed host from orders on other hosts: it does not return to those."""
    for order in open_orders_with(draft, machine.id):
        if order.host not in (None, machine.host):
            remove_machine(draft, order, machine.id, why=why)


def remove_from_fleet(
    draft: Draft, machine: Machine, *, why: str, by: str = "", keep: OrderId | None = None
) -> None:
    """Remove a machine from the fleet and from all orders, except one."""
    for order in open_orders_with(draft, machine.id):
        if order.id != keep:
            remove_machine(draft, order, machine.id, why=why)
    draft.record(Kind.MACHINE_REMOVED, machine, by=by, reason=why)
    del draft.machines[machine.id]
    wake_undivided_orders(draft, machine.host)
    if draft.groups[machine.group].kind is GroupKind.STANDALONE:
        del draft.groups[machine.group]


def remove_if_terminated(draft: Draft, order: Order) -> None:
    """Remove the machine that an order has terminated from the fleet, even if the order was abandoned."""
    done = any(step.state is StepState.DONE for step in order.steps)
    if order.work is Work.TERMINATE and done and order.machine in draft.machines:
        remove_from_fleet(draft, draft.machines[order.machine], why="terminated", by=order.by, keep=order.id)


def close(draft: Draft, order: Order, *, why: str, by: str = "", kind: Kind = Kind.ORDER_CANCELLED) -> Order:
    """Cancel an order and all its events."""
    order = withdraw(draft, order, why=why, by=by)
    draft.record(kind, order, by=by, reason=why)
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=why))
    return draft.put_order(ended(draft, order, OrderState.CANCELLED, why=why))


def withdraw(draft: Draft, order: Order, *, why: str, by: str = "") -> Order:
    """End all events of an order, and make its unfinished machine steps moot."""
    for event in draft.events_of(order.id):
        events.end(draft, event, Kind.EVENT_CANCELLED, why=why, by=by)
    before = draft.orders[order.id]
    withdrawn = draft.put_order(_abandon_steps(draft, before, why=why))
    for step in before.steps:
        if step.state is StepState.RUNNING:
            wake_others(draft, order, step.machine)
    return withdrawn


def abandon_step(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Make a step moot. If its machine stays down, remove it from other orders: it must be started first."""
    moot = steps.abandon(draft, order, step, why=why)
    machine = draft.machines.get(step.machine)
    if machine is not None and step.work is Work.RECOVER and machine.state is MachineState.STOPPED:
        for other in open_orders_with(draft, machine.id):
            stays = other.id == order.id or ACTIONS[other.action].leaves or _under_way(other, machine.id)
            if not stays:
                remove_machine(draft, other, machine.id, why=f"down, and not recovered (order {order.id})")
    return moot


def ended(draft: Draft, order: Order, state: OrderState, *, why: str = "") -> Order:
    """Return an order in a final state."""
    return replace(order, state=state, waiting=(), ended_at=draft.now, why=why, due_at=None)


def remove_machine(draft: Draft, order: Order, machine: MachineId, *, why: str) -> None:
    """Remove a machine from an order, even while a step runs. An order on this machine alone is closed."""
    if order.machine == machine:
        close(draft, order, why=why)
        return
    for event in draft.events_of(order.id):
        events.remove_machine(draft, event, machine, why=why)
    draft.wake([draft.put_order(_abandon_steps(draft, order, why=why, of=machine))])


def _abandon_steps(draft: Draft, order: Order, *, why: str, of: MachineId | None = None) -> Order:
    """Make the unfinished steps of one machine, or of all machines, moot."""

    def abandoned(step: Step) -> Step:
        kept = step.state in steps.FINISHED or of not in (None, step.machine)
        return step if kept else abandon_step(draft, order, step, why=why)

    return stages.with_steps(order, abandoned)


def open_orders_with(draft: Draft, machine: MachineId) -> Sequence[Order]:
    """Return the open orders on a machine, and those with a step for it."""
    return [
        order
        for order in draft.orders_of(machine)
        if order.open and (order.machine == machine or any(step.machine == machine for step in order.steps))
    ]


def wake_others(draft: Draft, order: Order, machine: MachineId) -> None:
    """Wake the other open orders that concern a machine."""
    draft.wake(other for other in open_orders_with(draft, machine) if other.id != order.id)


def wake_host_of(draft: Draft, order: Order) -> None:
    """Wake the orders that concern the machine of an order that ended early, and those on its host.

    The machine stays in the fleet, so they must announce their work to it.
    """
    machine = draft.machines.get(order.machine) if order.machine else None
    if machine is not None and machine.host is not None:
        draft.wake(orders_on(draft, machine.host))
        wake_others(draft, order, machine.id)


def wake_failures(draft: Draft, host: HostName | None) -> None:
    """Wake the failures of a host: another order has taken over one of its machines or has ended."""
    there = () if host is None else orders_on(draft, host)
    draft.wake(order for order in there if order.action is Action.FAIL)


def wake_undivided_orders(draft: Draft, host: HostName | None) -> None:
    """Wake the orders that treat all machines of a host together: they may wait for one that has left."""
    if host is not None:
        there = orders_on(draft, host)
        draft.wake(order for order in there if order.terms.undivided or order.action is Action.FAIL)


def orders_on(draft: Draft, host: HostName) -> Sequence[Order]:
    """Return the open orders on a host that work on its machines."""
    return [
        order
        for order in draft.orders.values()
        if order.open and order.host == host and order.work is not None
    ]


def _under_way(order: Order, machine: MachineId) -> bool:
    """Return whether a step of the machine has begun, so that it cannot be removed."""
    begun = (StepState.RUNNING, StepState.DONE)
    live = (step for stage in order.stages if stage.state is not StageState.DONE for step in stage.steps)
    return any(step.machine == machine and step.state in begun for step in live)


def stage_events(draft: Draft, order: Order, index: int) -> tuple[Event, ...]:
    """Return the listed events of a stage."""
    return tuple(event for event in draft.events_of(order.id) if event.stage == index)


def finish_events(draft: Draft, order: Order, policy: Policy) -> None:
    """End the started events whose work is done and that were listed long enough."""
    for event in draft.events_of(order.id):
        if _is_over(order, event) and draft.now >= _listed_until(event, policy):
            events.end(draft, event, Kind.EVENT_FINISHED, why="done")
            remove_if_terminated(draft, order)


def finish_times(draft: Draft, order: Order, policy: Policy) -> list[datetime]:
    """Return when the events whose work is done may leave the document."""
    over = (event for event in draft.events_of(order.id) if _is_over(order, event))
    return [_listed_until(event, policy) for event in over]


def waiting_to_finish(draft: Draft, order: Order, policy: Policy) -> tuple[Waiting, ...]:
    """Return until when the events of an order stay listed, if their work is done."""
    return tuple(
        Waiting(
            what=event.id,
            reason=f"is done, and stays listed until {format_time(until)} so that slow pollers see it",
            until=until,
        )
        for event in draft.events_of(order.id)
        if (until := _listed_until(event, policy)) > draft.now
    )


def _is_over(order: Order, event: Event) -> bool:
    """Return whether all work that a started event announced is done."""
    return event.status is EventStatus.STARTED and steps.all_finished(
        events.announced_steps(event, order.stages[event.stage].steps)
    )


def _listed_until(event: Event, policy: Policy) -> datetime:
    return (event.started_at or event.not_before) + policy.linger
