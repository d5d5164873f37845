"""Cancel, retry or abandon an order, or stop it by a hold."""

from dataclasses import replace

from forewarn.core.admission import holds
from forewarn.core.basic_types import Action, EventStatus, Kind, OrderId, OrderState, StageState, StepState
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import HostStep, Order, Step
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


def cancel(draft: Draft, order_id: OrderId, *, by: str, why: str = "cancelled") -> Order:
    """Cancel an order with all its events, unless one of them has started."""
    order = draft.orders[order_id]
    if not order.open:
        raise Conflict(f"order {order_id} is {order.state}, there is nothing to cancel")
    _check_not_abandoned(order)
    if _has_begun(draft, order):
        raise Conflict(f"order {order_id} is {order.state}, too late to cancel")
    if host_work.was_cordoned_by_step(order):
        return abandonment.cancel(draft, order, by=by, why=why)
    order = departures.close(draft, order, why=why, by=by)
    host_work.uncordon(draft, order)
    departures.wake_host_of(draft, order)
    return order


def _has_begun(draft: Draft, order: Order) -> bool:
    """Return whether an event, or a stage other than moves, has started. A host failure always has."""
    started = [index for index, stage in enumerate(order.stages) if stage.state is StageState.STARTED]
    together = any(not stages.starts_per_event(order.stages[index]) for index in started)
    begun = any(event.status is EventStatus.STARTED for event in draft.events_of(order.id))
    return begun or together or order.action is Action.FAIL


def retry(draft: Draft, order_id: OrderId, *, by: str, policy: Policy) -> Order:
    """Carry out the failed steps of an order again."""
    order = draft.orders[order_id]
    if not order.open or order.state is not OrderState.FAILED:
        over = "" if order.open else ", and over"
        raise Conflict(f"order {order_id} is {order.state}{over}: only a failed order can be retried")
    _check_not_abandoned(order)
    order = host_steps.with_steps(stages.with_steps(order, _tried_again), _host_step_tried_again)
    draft.record(Kind.ORDER_RETRIED, order, by=by)
    draft.put_order(replace(order, state=OrderState.STARTED))
    return lifecycle.advance(draft, order_id, policy=policy)


def _tried_again(step: Step) -> Step:
    if step.state is not StepState.FAILED:
        return step
    # The operator may have freed capacity, so hosts that refused the machine are asked again.
    return replace(steps.tried_again(step), refused=(), failures=0, failed_on=(), precheck=None)


def _host_step_tried_again(step: HostStep) -> HostStep:
    return steps.tried_again(step) if step.state is StepState.FAILED else step


def abandon(draft: Draft, order_id: OrderId, *, by: str) -> Order:
    """Abandon an order that failed or is under way: end its events and leave the rest undone.

    Drivers are asked to cancel running steps. The order closes when no step runs any more.
    """
    order = draft.orders[order_id]
    if not order.open:
        raise Conflict(f"order {order_id} is {order.state}, and over: there is nothing to abandon")
    _check_not_abandoned(order)
    fencing.check_may_abandon(draft, order)
    if order.state is not OrderState.FAILED and not order.driven:
        # Between two stages, or while its events stay listed.
        why = "nothing of it runs: cancel it, or let it end"
        raise Conflict(f"order {order_id} is {order.state}, and {why}")
    return abandonment.begin(draft, order, by=by)


def _check_not_abandoned(order: Order) -> None:
    if order.terms.abandoned_by:
        raise Conflict(f"order {order.id} is being {order.given_up} already")


_NOT_OVER = (StepState.WAITING, StepState.RUNNING)


def stop(draft: Draft, order_id: OrderId, hold: Hold) -> bool:
    """Abandon an order that is under way and that a hold applies to; return whether it is."""
    order = draft.orders[order_id]
    # The recovery of a failed host is never stopped: its machines are down.
    if not order.open or order.terms.abandoned_by or order.action is Action.FAIL:
        return False
    started = (stage for stage in order.stages if stage.state is StageState.STARTED)
    under_way = any(step.state in _NOT_OVER for stage in started for step in stage.steps)
    if not under_way and not order.running_host_steps:
        return False
    known = [draft.machines[step.machine] for step in order.steps if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in known)}
    if not holds.reaching([hold], hosts=hosts, projects={machine.project for machine in known}):
        return False
    terms = replace(order.terms, stopped_by=hold.id, stopped_because=hold.reason)
    abandonment.begin(draft, draft.put_order(replace(order, terms=terms)), by=hold.by)
    return True
