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


def cancel(draft: Draft, order: OrderId, *, by: str, why: str = "cancelled") -> Order:
    """Cancel an order with all its events, unless one of them has started."""
    mine = draft.orders[order]
    if not mine.open:
        raise Conflict(f"order {order} is {mine.state}, there is nothing to cancel")
    _check_not_abandoned(mine)
    if _has_begun(draft, mine):
        raise Conflict(f"order {order} is {mine.state}, too late to cancel")
    if host_work.was_cordoned_by_step(mine):
        return abandonment.cancel(draft, mine, by=by, why=why)
    mine = departures.close(draft, mine, why=why, by=by)
    host_work.release(draft, mine)
    departures.wake_host_of(draft, mine)
    return mine


def _has_begun(draft: Draft, order: Order) -> bool:
    """Return whether an event, or a stage other than moves, has started. A host failure always has."""
    started = [index for index, stage in enumerate(order.stages) if stage.state is StageState.STARTED]
    together = any(not stages.starts_per_event(order.stages[index]) for index in started)
    begun = any(event.status is EventStatus.STARTED for event in draft.events_of(order.id))
    return begun or together or order.action is Action.FAIL


def retry(draft: Draft, order: OrderId, *, by: str, policy: Policy) -> Order:
    """Carry out the failed steps of an order again."""
    mine = draft.orders[order]
    if not mine.open or mine.state is not OrderState.FAILED:
        over = "" if mine.open else ", and over"
        raise Conflict(f"order {order} is {mine.state}{over}: only one that failed can be retried")
    _check_not_abandoned(mine)
    mine = host_steps.with_steps(stages.with_steps(mine, _tried_again), _host_step_tried_again)
    draft.record(Kind.ORDER_RETRIED, mine, by=by)
    draft.put_order(replace(mine, state=OrderState.STARTED))
    return lifecycle.advance(draft, order, policy=policy)


def _tried_again(step: Step) -> Step:
    if step.state is not StepState.FAILED:
        return step
    # The operator may have freed capacity, so hosts that refused the machine are asked again.
    return replace(steps.tried_again(step), refused=(), failures=0, failed_on=(), precheck=None)


def _host_step_tried_again(step: HostStep) -> HostStep:
    return steps.tried_again(step) if step.state is StepState.FAILED else step


def abandon(draft: Draft, order: OrderId, *, by: str) -> Order:
    """Abandon an order that failed or is under way: end its events and leave the rest undone.

    Drivers are asked to cancel running steps. The order closes when no step runs any more.
    """
    mine = draft.orders[order]
    if not mine.open:
        raise Conflict(f"order {order} is {mine.state}, and over: there is nothing to abandon")
    _check_not_abandoned(mine)
    fencing.check_may_abandon(draft, mine)
    if mine.state is not OrderState.FAILED and not mine.driven:
        # Between two stages, or while its events stay listed.
        why = "nothing of it runs: cancel it, or let it end"
        raise Conflict(f"order {order} is {mine.state}, and {why}")
    return abandonment.begin(draft, mine, by=by)


def _check_not_abandoned(order: Order) -> None:
    if order.terms.abandoned_by:
        raise Conflict(f"order {order.id} is being {order.given_up} already")


_NOT_OVER = (StepState.WAITING, StepState.RUNNING)


def stop(draft: Draft, order: OrderId, hold: Hold) -> bool:
    """Abandon an order that is under way and that a hold applies to; return whether it is."""
    mine = draft.orders[order]
    # The recovery of a failed host is never stopped: its machines are down.
    if not mine.open or mine.terms.abandoned_by or mine.action is Action.FAIL:
        return False
    started = (stage for stage in mine.stages if stage.state is StageState.STARTED)
    under_way = any(step.state in _NOT_OVER for stage in started for step in stage.steps)
    if not under_way and not mine.running_host_steps:
        return False
    known = [draft.machines[step.machine] for step in mine.steps if step.machine in draft.machines]
    hosts = {mine.host, *(machine.host for machine in known)}
    if not holds.reaching([hold], hosts=hosts, projects={machine.project for machine in known}):
        return False
    terms = replace(mine.terms, stopped_by=hold.id, stopped_because=hold.reason)
    abandonment.begin(draft, draft.put_order(replace(mine, terms=terms)), by=hold.by)
    return True
