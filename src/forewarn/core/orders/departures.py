"""Machines that leave their host, events or fleet; orders and started events that end."""

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
from forewarn.core.time_formats import format_time
from forewarn.core.orders import events, host_steps, stages, steps
from forewarn.core.policy import Policy


def leave_scheduled(draft: Draft, machine: Machine, *, why: str, keep: OrderId) -> None:
    """Take a machine out of everything that is only scheduled for it, but for one order.

    A failure has happened, whatever else comes: who left it could be started before the host is fenced.
    """
    for order in open_orders_with(draft, machine.id):
        kept = order.id == keep or order.action is Action.FAIL
        if not kept and not _under_way(order, machine.id):
            leave(draft, order, machine.id, why=why)


def remove_from_host_orders(draft: Draft, machine: Machine, *, why: str, keep: OrderId | None = None) -> None:
    """Take a machine that was moved by other hands out of what is scheduled on the host it was on."""
    for order in open_orders_with(draft, machine.id):
        on_host = order.host is not None and order.host == machine.host
        if on_host and order.id != keep and not _under_way(order, machine.id):
            leave(draft, order, machine.id, why=why)


def leave_other_hosts(draft: Draft, machine: Machine, *, why: str) -> None:
    """Take a machine whose host has failed out of what is done for another: it does not come back there."""
    for order in open_orders_with(draft, machine.id):
        if order.host not in (None, machine.host):
            leave(draft, order, machine.id, why=why)


def remove_from_fleet(
    draft: Draft, machine: Machine, *, why: str, by: str = "", keep: OrderId | None = None
) -> None:
    """Take a machine out of the fleet, and its share out of everything."""
    for order in open_orders_with(draft, machine.id):
        if order.id != keep:
            leave(draft, order, machine.id, why=why)
    draft.record(Kind.MACHINE_REMOVED, machine, by=by, reason=why)
    del draft.machines[machine.id]
    wake_undivided_orders(draft, machine.host)
    if draft.groups[machine.group].kind is GroupKind.STANDALONE:
        del draft.groups[machine.group]


def leave_if_terminated(draft: Draft, order: Order) -> None:
    """Take a machine out of the fleet that an order has terminated, whatever became of the order."""
    done = any(step.state is StepState.DONE for step in order.steps)
    if order.work is Work.TERMINATE and done and order.machine in draft.machines:
        remove_from_fleet(draft, draft.machines[order.machine], why="terminated", by=order.by, keep=order.id)


def close(draft: Draft, order: Order, *, why: str, by: str = "", kind: Kind = Kind.ORDER_CANCELLED) -> Order:
    """End an order that is not to be finished, with all its events."""
    order = withdraw(draft, order, why=why, by=by)
    draft.record(kind, order, by=by, reason=why)
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=why))
    return draft.put_order(ended(draft, order, OrderState.CANCELLED, why=why))


def withdraw(draft: Draft, order: Order, *, why: str, by: str = "") -> Order:
    """End all events of an order, and make what is not done of its machines' steps moot."""
    for event in draft.events_of(order.id):
        events.end(draft, event, Kind.EVENT_CANCELLED, why=why, by=by)
    before = draft.orders[order.id]
    withdrawn = draft.put_order(_abandon_steps(draft, before, why=why))
    for step in before.steps:
        if step.state is StepState.RUNNING:
            wake_others(draft, order, step.machine)
    return withdrawn


def abandon_step(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Make a step moot; a machine that stays down without it must be started before anything else."""
    moot = steps.abandon(draft, order, step, why=why)
    machine = draft.machines.get(step.machine)
    if machine is not None and step.work is Work.RECOVER and machine.state is MachineState.STOPPED:
        for other in open_orders_with(draft, machine.id):
            stays = other.id == order.id or ACTIONS[other.action].leaves or _under_way(other, machine.id)
            if not stays:
                leave(draft, other, machine.id, why=f"down, and not recovered (order {order.id})")
    return moot


def ended(draft: Draft, order: Order, state: OrderState, *, why: str = "") -> Order:
    """Return an order of which nothing more will come."""
    return replace(order, state=state, waiting=(), ended_at=draft.now, why=why, due_at=None)


def leave(draft: Draft, order: Order, machine: MachineId, *, why: str) -> None:
    """Take a machine out of an order, whatever is being done to it; one on the machine alone is closed."""
    if order.machine == machine:
        close(draft, order, why=why)
        return
    for event in draft.events_of(order.id):
        events.take_out(draft, event, machine, why=why)
    draft.wake([draft.put_order(_abandon_steps(draft, order, why=why, of=machine))])


def _abandon_steps(draft: Draft, order: Order, *, why: str, of: MachineId | None = None) -> Order:
    """Make every step moot that is not done: of one machine, or of all."""

    def left(step: Step) -> Step:
        kept = step.state in stages.SETTLED or of not in (None, step.machine)
        return step if kept else abandon_step(draft, order, step, why=why)

    return stages.with_steps(order, left)


def open_orders_with(draft: Draft, machine: MachineId) -> Sequence[Order]:
    """Find the open orders that are about a machine, or have a step of it."""
    return [
        order
        for order in draft.orders_of(machine)
        if order.open and (order.machine == machine or any(step.machine == machine for step in order.steps))
    ]


def wake_others(draft: Draft, order: Order, machine: MachineId) -> None:
    """Have the other orders looked at that are about a machine, or have a step of it."""
    draft.wake(other for other in open_orders_with(draft, machine) if other.id != order.id)


def wake_host_of(draft: Draft, order: Order) -> None:
    """Have the orders on a machine's host looked at: it stays after all, and needs notice of them.

    So does one that is to move back to a host where it was.
    """
    machine = draft.machines.get(order.machine) if order.machine else None
    if machine is not None and machine.host is not None:
        draft.wake(orders_on(draft, machine.host))
        wake_others(draft, order, machine.id)


def wake_failure(draft: Draft, host: HostName | None) -> None:
    """Have the failures of a host looked at: a machine of it is in other hands, or in none any more."""
    there = () if host is None else orders_on(draft, host)
    draft.wake(order for order in there if order.action is Action.FAIL)


def wake_undivided_orders(draft: Draft, host: HostName | None) -> None:
    """Have what is done to a whole host looked at: it may have waited for a machine that has left."""
    if host is not None:
        there = orders_on(draft, host)
        draft.wake(order for order in there if order.terms.undivided or order.action is Action.FAIL)


def orders_on(draft: Draft, host: HostName) -> Sequence[Order]:
    """Find the open orders on a host that do something to its machines."""
    return [
        order
        for order in draft.orders.values()
        if order.open and order.host == host and order.work is not None
    ]


def _under_way(order: Order, machine: MachineId) -> bool:
    """Return whether a step of the machine has begun: then it is too late to leave."""
    begun = (StepState.RUNNING, StepState.DONE)
    live = (step for stage in order.stages if stage.state is not StageState.DONE for step in stage.steps)
    return any(step.machine == machine and step.state in begun for step in live)


def stage_events(draft: Draft, order: Order, index: int) -> tuple[Event, ...]:
    """Return the listed events of a stage."""
    return tuple(event for event in draft.events_of(order.id) if event.stage == index)


def finish_events(draft: Draft, order: Order, policy: Policy) -> None:
    """End the events of an order that are over and have been listed for long enough."""
    for event in draft.events_of(order.id):
        if is_over(order, event) and draft.now >= linger_until(event, policy):
            _finish(draft, order, event)


def finish_times(draft: Draft, order: Order, policy: Policy) -> list[datetime]:
    """Return when events of an order will have been listed for long enough."""
    over = (event for event in draft.events_of(order.id) if is_over(order, event))
    return [linger_until(event, policy) for event in over]


def waiting_to_finish(draft: Draft, order: Order, policy: Policy) -> tuple[Waiting, ...]:
    """Return until when the events of an order stay listed that has nothing else to wait for."""
    return tuple(
        Waiting(
            what=event.id,
            reason=f"is done, and stays listed until {format_time(until)} so that slow pollers see it",
            until=until,
        )
        for event in draft.events_of(order.id)
        if (until := linger_until(event, policy)) > draft.now
    )


def is_over(order: Order, event: Event) -> bool:
    """Return whether all that a started event announced is done."""
    if event.status is not EventStatus.STARTED:
        return False
    return stages.settled(events.told_by(event, order.stages[event.stage].steps))


def linger_until(event: Event, policy: Policy) -> datetime:
    """Return until when a started event is listed at least."""
    return (event.started_at or event.not_before) + policy.linger


def _finish(draft: Draft, order: Order, event: Event) -> None:
    events.end(draft, event, Kind.EVENT_FINISHED, why="done")
    leave_if_terminated(draft, order)
