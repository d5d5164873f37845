"""What people may do with an order that was placed: cancel it, retry it, abandon it, or stop it by a hold."""

from dataclasses import replace

from forewarn.core.admission import holds
from forewarn.core.basic_types import Action, EventStatus, Kind, OrderId, OrderState, StageState, StepState
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import (
    abandonment,
    departures,
    fencing,
    host_steps,
    host_work,
    lifecycle,
    stages,
    steps,
)
from forewarn.core.policy import Policy


def cancel(draft: Draft, order: OrderId, *, by: str, why: str = "cancelled") -> Order:
    """Cancel an order with all its events; refuse once one of them has started."""
    mine = draft.orders[order]
    if not mine.open:
        raise Conflict(f"order {order} is {mine.state}, there is nothing to cancel")
    _check_kept(mine)
    if _has_begun(draft, mine):
        raise Conflict(f"order {order} is {mine.state}, too late to cancel")
    if host_work.was_cordoned_by_step(mine):
        return abandonment.cancel(draft, mine, by=by, why=why)
    mine = departures.close(draft, mine, why=why, by=by)
    host_work.release(draft, mine)
    departures.wake_host_of(draft, mine)
    return mine


def _has_begun(draft: Draft, order: Order) -> bool:
    """Return whether something is under way; where machines move, events begin and end by themselves.

    A host has failed, whatever comes of its machines.
    """
    started = [index for index, stage in enumerate(order.stages) if stage.state is StageState.STARTED]
    moving = {index for index in started if stages.is_apart(order.stages[index])}
    begun = any(event.status is EventStatus.STARTED for event in draft.events_of(order.id))
    return begun or len(moving) < len(started) or order.action is Action.FAIL


def retry(draft: Draft, order: OrderId, *, by: str, policy: Policy) -> Order:
    """Carry out the failed steps of an order once more."""
    mine = draft.orders[order]
    if not mine.open or mine.state is not OrderState.FAILED:
        over = "" if mine.open else ", and over"
        raise Conflict(f"order {order} is {mine.state}{over}: only one that failed can be retried")
    _check_kept(mine)
    mine = host_steps.with_steps(stages.with_steps(mine, _tried_again), host_steps.tried_again)
    draft.record(Kind.ORDER_RETRIED, mine, by=by)
    draft.put_order(replace(mine, state=OrderState.STARTED))
    return lifecycle.advance(draft, order, policy=policy)


def _tried_again(step: Step) -> Step:
    if step.state is not StepState.FAILED:
        return step
    # A person may have made room.
    return replace(steps.tried_again(step), refused=(), failures=0, failed_on=(), precheck=None)


def abandon(draft: Draft, order: OrderId, *, by: str) -> Order:
    """Give up an order that failed or is under way: its events leave, what was not done stays undone.

    Drivers are asked to call off what runs; the order closes when nothing of it runs any more.
    """
    mine = draft.orders[order]
    if not mine.open:
        raise Conflict(f"order {order} is {mine.state}, and over: there is nothing to abandon")
    _check_kept(mine)
    fencing.check_abandoned(draft, mine)
    if mine.state is not OrderState.FAILED and not mine.driven:
        # Between two stages, or while its events linger.
        why = "nothing of it runs: cancel it, or let it end"
        raise Conflict(f"order {order} is {mine.state}, and {why}")
    return abandonment.begin(draft, mine, by=by)


def _check_kept(order: Order) -> None:
    if order.terms.abandoned_by:
        raise Conflict(f"order {order.id} is being {order.given_up} already")


_NOT_OVER = (StepState.WAITING, StepState.RUNNING)


def stop(draft: Draft, order: OrderId, hold: Hold) -> bool:
    """Call an order off that a hold reaches while it is under way; return whether it is."""
    mine = draft.orders[order]
    if not (_is_under_way(mine) and _is_reached(draft, mine, hold)):
        return False
    terms = replace(mine.terms, stopped_by=hold.id, stopped_because=hold.reason)
    abandonment.begin(draft, draft.put_order(replace(mine, terms=terms)), by=hold.by)
    return True


def _is_under_way(order: Order) -> bool:
    """Return whether steps of it run or may begin at any moment.

    Machines of a failed host are down: bringing them back is not called off.
    """
    if not order.open or order.terms.abandoned_by or order.action is Action.FAIL:
        return False
    started = (stage for stage in order.stages if stage.state is StageState.STARTED)
    machines = any(step.state in _NOT_OVER for stage in started for step in stage.steps)
    return machines or bool(order.running_host_steps)


def _is_reached(draft: Draft, order: Order, hold: Hold) -> bool:
    known = [draft.machines[step.machine] for step in order.steps if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in known)}
    return bool(holds.reaching([hold], hosts=hosts, projects={machine.project for machine in known}))
