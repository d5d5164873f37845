"""A host failure takes over the machines of the host and ends the other orders on them."""

from dataclasses import replace

from forewarn.core.basic_types import Action, HostName, MachineId, MachineState, OrderId, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import departures, host_failures, stages, steps


def supersede(draft: Draft, failure: Order, host: HostName) -> None:
    """End the orders on a failed host and its machines, except evictions and terminations under way."""
    why = f"host {host} failed (order {failure.id})"
    down, moving = _unrecovered(draft, host), _moving_away(draft, host)
    carried = {machine.id for machine in draft.machines_on(host)}
    for other in list(draft.orders.values()):
        concerned = other.host == host or other.machine in carried
        if other.open and other.id != failure.id and concerned and not host_failures.is_departing(other):
            _end(draft, other, why=why)
    for machine in down:  # this failure recovers it, once the host is fenced
        draft.put_machine(machine)
    for machine in draft.machines_on(host):
        departures.remove_from_other_hosts(draft, machine, why=why)
    for id_, target in moving.items():
        draft.put_machine(replace(draft.machines[id_], bound_for=target))
    _take_over_arrivals(draft, host, why=why)


def _end(draft: Draft, order: Order, *, why: str) -> None:
    """End an order, but let its recoveries on other hosts finish: their progress is unknown."""
    elsewhere = [step for step in order.running if step.target != order.host]
    if order.action is not Action.FAIL or not elsewhere:
        departures.close(draft, order, why=why)
        return
    going = {step.machine for step in elsewhere}
    for step in order.steps:
        if step.machine not in going and step.state not in steps.FINISHED:
            departures.remove_machine(draft, draft.orders[order.id], step.machine, why=why)


def _unrecovered(draft: Draft, host: HostName) -> list[Machine]:
    """Return the machines that an earlier failure hit and that are not on their way to another host."""
    earlier = (each for each in departures.orders_on(draft, host) if each.action is Action.FAIL)
    hit = {
        step.machine
        for each in earlier
        for step in each.steps
        if step.state in (StepState.WAITING, StepState.FAILED)
        or (step.state is StepState.RUNNING and step.target == host)
    }
    return [machine for machine in draft.machines_on(host) if machine.id in hit]


def _moving_away(draft: Draft, host: HostName) -> dict[MachineId, HostName]:
    """Return the targets of moves under way from a host.

    A machine may have arrived. Recovery on a third host could then run it twice.
    """
    carried = {machine.id for machine in draft.machines_on(host)}
    running = (step for order in draft.orders.values() if order.open for step in order.running)
    return {
        step.machine: step.target
        for step in running
        if step.machine in carried and step.target is not None and step.target != host
    }


def _take_over_arrivals(draft: Draft, host: HostName, *, why: str) -> None:
    """Put machines that are being started on the host into the failure: they may run until it is fenced.

    A machine that is being moved there is not taken over, since it may still run on its old host. The driver
    that moves it reports where it is.
    """
    for order, step in host_failures.steps_bound_for(draft, host):
        if step.work in host_failures.BRINGS_UP:
            departures.remove_machine(draft, draft.orders[order.id], step.machine, why=why)
            _mark_down(draft, step, host)
            departures.wake_failures(draft, order.host)
            draft.wake(
                departures.open_orders_with(draft, step.machine)
            )  # an order may have waited for the machine


def _mark_down(draft: Draft, step: Step, host: HostName | None) -> None:
    machine = draft.machines[step.machine]
    draft.put_machine(replace(machine, host=host, state=MachineState.RESTARTING, bound_for=None))


def hand_over(draft: Draft, order_id: OrderId, step: Step, *, why: str) -> bool:
    """Move a failed recovery to the newest failure of its host; return whether there is a newer one."""
    order = draft.orders[order_id]
    if not host_failures.is_superseded(draft, order):
        return False
    host = draft.machines[step.machine].host
    departures.remove_machine(draft, order, step.machine, why=f"{why}; host {order.host} has failed again")
    _mark_down(draft, step, host)
    departures.wake_failures(draft, order.host)
    return True


def end_departures(draft: Draft, failure: Order) -> None:
    """Mark evictions and terminations on a fenced host as done: nothing runs there any more.

    Their driver might never answer.
    """
    for _, order in host_failures.departing_machines(draft, failure):
        if order.action is not Action.FAIL and order.running:
            _end_departures(draft, order)


def _end_departures(draft: Draft, order: Order) -> None:
    ended = {step.machine: end_departure(draft, order, step) for step in order.running}
    put = stages.with_steps(draft.orders[order.id], lambda step: ended.get(step.machine, step))
    draft.wake([draft.put_order(put)])


def end_departure(draft: Draft, order: Order, step: Step) -> Step:
    """Mark a machine of a fenced host as gone, and remove it from the host's failure."""
    before = draft.machines[step.machine]
    done = steps.done(draft, order, step)
    departures.remove_from_host_orders(
        draft, before, why=f"{order.action}: its host is fenced", keep=order.id
    )
    departures.wake_undivided_orders(draft, before.host)
    return done
