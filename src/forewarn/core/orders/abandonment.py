"""Abandon an order: ask drivers to cancel running steps, and close the order once none runs."""

from dataclasses import replace

from forewarn.core.basic_types import FOREWARN, EventStatus, Kind, OrderState, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.order import Order
from forewarn.core.orders import departures, events, host_steps, host_work, reasons, stages, steps
from forewarn.core.orders.steps import AnyStep
from forewarn.core.redaction import machine_names


def begin(draft: Draft, order: Order, *, by: str) -> Order:
    """Abandon an order. It closes at once if no step runs."""
    order = replace(order, terms=replace(order.terms, abandoned_by=by))
    if order.driven:
        names = machine_names(step.name for step in order.driven)
        reason = f"its driver is asked to cancel running steps: {names}"
        draft.record(Kind.ORDER_ABANDONING, order, by=by, reason=reason)
    draft.put_order(order)
    for event in draft.events_of(order.id):
        if event.status is EventStatus.SCHEDULED:  # it will not start, however long the running steps take
            events.end(draft, event, Kind.EVENT_CANCELLED, why=order.given_up, by=by)
    return _cancel_steps(draft, order)


def cancel(draft: Draft, order: Order, *, by: str, why: str) -> Order:
    """Cancel an order whose host a hook has cordoned: another hook must uncordon it before the order ends."""
    draft.record(Kind.ORDER_CANCELLED, order, by=by, reason=why)
    order = departures.withdraw(draft, order, why=why, by=by)
    terms = replace(order.terms, abandoned_by=by or FOREWARN)
    return _cancel_steps(draft, replace(order, terms=terms, state=OrderState.CANCELLED, why=why))


def _cancel_steps(draft: Draft, order: Order) -> Order:
    """Make running steps due now, so that their drivers are called to cancel them."""

    def asked(step: AnyStep) -> AnyStep:
        runs = step.state is StepState.RUNNING
        return replace(step, look_at=steps.check_at(draft, order.driver_of(step))) if runs else step

    order = host_steps.with_steps(stages.with_steps(order, asked), asked)
    return advance(draft, draft.put_order(order))


def advance(draft: Draft, order: Order) -> Order:
    """Close an abandoned order once no step runs; until then, set what it waits for."""
    uncordon = None if order.driven else host_work.pending_uncordon(draft, order)
    if uncordon is not None:
        order = replace(order, why=_why(order))
        order = departures.withdraw(draft, draft.put_order(order), why=order.why, by=order.terms.abandoned_by)
        order = host_steps.put(order, host_steps.begin(draft, order, uncordon))
    if not order.driven:
        return _close(draft, order)
    looks = [step.look_at for step in order.driven if step.look_at is not None]
    waiting = reasons.why_not_closed(order)
    return draft.put_order(replace(order, waiting=waiting, due_at=min(looks, default=None)))


def _close(draft: Draft, order: Order) -> Order:
    if order.state is OrderState.CANCELLED:
        why = _with_uncordon(draft, order, order.why)
        order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=order.why))
        return draft.put_order(departures.ended(draft, order, OrderState.CANCELLED, why=why))
    by, why = order.terms.abandoned_by, _why(order)
    closed = departures.close(draft, order, why=why, by=by, kind=Kind.ORDER_ABANDONED)
    why = _with_uncordon(draft, order, why)
    departures.remove_if_terminated(draft, closed)
    departures.wake_host_of(draft, closed)
    return draft.put_order(replace(draft.orders[order.id], state=OrderState.FAILED, why=why))


def _with_uncordon(draft: Draft, order: Order, why: str) -> str:
    """Uncordon the host if possible; otherwise append the reason why it stays cordoned."""
    kept = host_work.uncordon(draft, order)
    return f"{why}; {kept}" if kept else why


def _why(order: Order) -> str:
    """Return who abandoned an order and what had failed. The text is kept while the host is uncordoned."""
    failed = reasons.failures(order)
    return order.why or (f"{order.given_up}: {failed[0].reason}" if failed else order.given_up)
