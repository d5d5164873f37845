"""What may be done with an order that was placed: cancel it, retry it, abandon it."""

from dataclasses import replace

from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import departures, lifecycle, stages
from forewarn.core.policy import Policy
from forewarn.core.words import Kind, OrderId, OrderState, StageState, StepState


def cancel(draft: Draft, order: OrderId, *, by: str, why: str = "cancelled") -> Order:
    """Cancel an order with all its events; refuse once one of them has started."""
    mine = draft.orders[order]
    if not mine.open:
        raise Conflict(f"order {order} is {mine.state}, there is nothing to cancel")
    if any(stage.state is StageState.STARTED for stage in mine.stages):
        raise Conflict(f"order {order} is {mine.state}, too late to cancel")
    mine = departures.close(draft, mine, why=why, by=by)
    _wake_host_of(draft, mine)
    return mine


def retry(draft: Draft, order: OrderId, *, by: str, policy: Policy) -> Order:
    """Carry out the failed steps of an order once more."""
    mine = _failed(draft, order)
    mine = stages.with_steps(mine, _tried_again)
    draft.record(Kind.ORDER_RETRIED, mine, by=by)
    draft.put_order(replace(mine, state=OrderState.STARTED))
    return lifecycle.advance(draft, order, policy=policy)


def _tried_again(step: Step) -> Step:
    if step.state is not StepState.FAILED:
        return step
    return replace(step, state=StepState.WAITING, attempt=step.attempt + 1, ended_at=None)


def abandon(draft: Draft, order: OrderId, *, by: str) -> Order:
    """Close an order that failed: its events leave, what was not done stays undone."""
    mine = _failed(draft, order)
    if any(step.state is StepState.RUNNING for step in mine.steps):
        raise Conflict(f"order {order} still has steps running: abandon it when they have ended")
    why = f"abandoned by {by}: {mine.waiting[0].reason}" if mine.waiting else f"abandoned by {by}"
    departures.close(draft, mine, why=why, by=by, kind=Kind.ORDER_ABANDONED)
    return draft.put_order(replace(draft.orders[order], state=OrderState.FAILED))


def _wake_host_of(draft: Draft, order: Order) -> None:
    """Have the orders on a machine's host looked at: it stays after all, and needs notice of them."""
    machine = draft.machines.get(order.machine) if order.machine else None
    if machine is not None and machine.host is not None:
        draft.wake(departures.orders_on(draft, machine.host))


def _failed(draft: Draft, order: OrderId) -> Order:
    mine = draft.orders[order]
    if not mine.open or mine.state is not OrderState.FAILED:
        over = ", and over" if not mine.open else ""
        raise Conflict(
            f"order {order} is {mine.state}{over}: only one that failed can be retried or abandoned"
        )
    return mine
