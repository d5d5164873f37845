"""What the failure of a host ends and takes over: no machine is left in hands that do not know of it."""

from dataclasses import replace

from forewarn.core.basic_types import Action, HostName, MachineId, MachineState, OrderId, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import departures, host_failures, stages, steps


def supersede(draft: Draft, failure: Order, host: HostName) -> None:
    """End what is done to a failed host and its machines, but for those that are just leaving."""
    why = f"host {host} failed (order {failure.id})"
    down, moving = _not_recovered(draft, host), _moving_away(draft, host)
    carried = {machine.id for machine in draft.machines_on(host)}
    for other in list(draft.orders.values()):
        mine = other.host == host or other.machine in carried
        if other.open and other.id != failure.id and mine and not host_failures.is_departing(other):
            _end(draft, other, why=why)
    for machine in down:  # this failure recovers it, once the host is fenced
        draft.put_machine(machine)
    for machine in draft.machines_on(host):
        departures.leave_other_hosts(draft, machine, why=why)
    for id_, target in moving.items():
        draft.put_machine(replace(draft.machines[id_], bound_for=target))
    _take_over_arrivals(draft, host, why=why)


def _end(draft: Draft, order: Order, *, why: str) -> None:
    """End an order; recoveries that go on elsewhere are let go on: nobody knows how far they are."""
    elsewhere = [step for step in order.running if step.target != order.host]
    if order.action is not Action.FAIL or not elsewhere:
        departures.close(draft, order, why=why)
        return
    going = {step.machine for step in elsewhere}
    for step in order.steps:
        if step.machine not in going and step.state not in stages.SETTLED:
            departures.leave(draft, draft.orders[order.id], step.machine, why=why)


def _not_recovered(draft: Draft, host: HostName) -> list[Machine]:
    """Return the machines that an earlier failure has hit, and that are not on their way elsewhere."""
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
    """Return where machines of a host are just moved: whoever has arrived would run twice on a third one."""
    carried = {machine.id for machine in draft.machines_on(host)}
    running = (step for order in draft.orders.values() if order.open for step in order.running)
    return {
        step.machine: step.target
        for step in running
        if step.machine in carried and step.target is not None and step.target != host
    }


def _take_over_arrivals(draft: Draft, host: HostName, *, why: str) -> None:
    """Have machines on the host that are just brought up there: they may run, until that is fenced.

    A machine that moves may also be where it was still: whoever moves it says so.
    """
    for order, step in host_failures.bound_for(draft, host):
        if step.work in host_failures.BRINGS_UP:
            departures.leave(draft, draft.orders[order.id], step.machine, why=why)
            _put_down(draft, step, host)
            departures.wake_failure(draft, order.host)
            draft.wake(departures.open_orders_with(draft, step.machine))  # which may have waited for it to be free


def _put_down(draft: Draft, step: Step, host: HostName | None) -> None:
    machine = draft.machines[step.machine]
    draft.put_machine(replace(machine, host=host, state=MachineState.RESTARTING, bound_for=None))


def hand_over(draft: Draft, order: OrderId, step: Step, *, why: str) -> bool:
    """Leave a recovery that came to nothing to the newest failure of its host, if there is a newer one."""
    mine = draft.orders[order]
    if not host_failures.is_superseded(draft, mine):
        return False
    host = draft.machines[step.machine].host
    departures.leave(draft, mine, step.machine, why=f"{why}; host {mine.host} has failed once more")
    _put_down(draft, step, host)
    departures.wake_failure(draft, mine.host)
    return True


def end_departures(draft: Draft, failure: Order) -> None:
    """Take evictions and terminations to be done on a host that is fenced: nothing runs there any more.

    Whoever carries them out might never answer.
    """
    for _, order in host_failures.leaving(draft, failure):
        if order.action is not Action.FAIL and order.running:
            _end_departures(draft, order)


def _end_departures(draft: Draft, order: Order) -> None:
    ended = {step.machine: end_departure(draft, order, step) for step in order.running}
    put = stages.with_steps(draft.orders[order.id], lambda step: ended.get(step.machine, step))
    draft.wake([draft.put_order(put)])


def end_departure(draft: Draft, order: Order, step: Step) -> Step:
    """Mark a machine as gone whose host is fenced, and take it out of what its host's failure does."""
    before = draft.machines[step.machine]
    done = steps.done(draft, order, step)
    departures.remove_from_host_orders(draft, before, why=f"{order.action}: its host is fenced", keep=order.id)
    departures.wake_undivided_orders(draft, before.host)
    return done
