"""An order that is given up: drivers are asked to call off what runs; it closes once nothing does."""

from dataclasses import replace

from forewarn.core.basic_types import FOREWARN, EventStatus, Kind, OrderState, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.orders import departures, events, host_steps, host_work, reasons, stages, steps
from forewarn.core.redaction import machine_names


def begin(draft: Draft, order: Order, *, by: str) -> Order:
    """Give an order up: at once if nothing of it runs."""
    order = replace(order, terms=replace(order.terms, abandoned_by=by))
    if order.driven:
        draft.record(Kind.ORDER_ABANDONING, order, by=by, reason=_called_off(order))
    draft.put_order(order)
    for event in draft.events_of(order.id):
        if event.status is EventStatus.SCHEDULED:  # nothing comes of it, however long the rest takes
            events.end(draft, event, Kind.EVENT_CANCELLED, why=order.given_up, by=by)
    return _call_off(draft, order)


def cancel(draft: Draft, order: Order, *, by: str, why: str) -> Order:
    """Cancel an order whose host was cordoned by a hook: another hook lets the host go before it is over."""
    draft.record(Kind.ORDER_CANCELLED, order, by=by, reason=why)
    order = departures.withdraw(draft, order, why=why, by=by)
    terms = replace(order.terms, abandoned_by=by or FOREWARN)
    return _call_off(draft, replace(order, terms=terms, state=OrderState.CANCELLED, why=why))


def _call_off(draft: Draft, order: Order) -> Order:
    def asked(step: Step) -> Step:
        runs = step.state is StepState.RUNNING
        return replace(step, look_at=steps.ask_at(draft, order.driver)) if runs else step

    def asked_of_host(step: HostStep) -> HostStep:
        runs = step.state is StepState.RUNNING
        return replace(step, look_at=steps.ask_at(draft, step.driver)) if runs else step

    order = host_steps.with_steps(stages.with_steps(order, asked), asked_of_host)
    return go_on(draft, draft.put_order(order))


def go_on(draft: Draft, order: Order) -> Order:
    """Close an order that was given up once nothing of it runs; until then, say what it waits for."""
    letting_go = None if order.driven else host_work.lets_go(draft, order)
    if letting_go is not None:
        order = replace(order, why=_why(order))
        order = departures.withdraw(draft, draft.put_order(order), why=order.why, by=order.terms.abandoned_by)
        order = host_steps.put(order, host_steps.begin(draft, order, letting_go))
    if not order.driven:
        return _close(draft, order)
    looks = [step.look_at for step in order.driven if step.look_at is not None]
    waiting = reasons.not_to_close(order)
    return draft.put_order(replace(order, waiting=waiting, due_at=min(looks, default=None)))


def _close(draft: Draft, order: Order) -> Order:
    if order.state is OrderState.CANCELLED:
        return _let_go(draft, order)
    by, why = order.terms.abandoned_by, _why(order)
    closed = departures.close(draft, order, why=why, by=by, kind=Kind.ORDER_ABANDONED)
    kept = host_work.release(draft, order)
    departures.leave_if_terminated(draft, closed)
    departures.wake_host_of(draft, closed)
    said = f"{why}; {kept}" if kept else why
    return draft.put_order(replace(draft.orders[order.id], state=OrderState.FAILED, why=said))


def _let_go(draft: Draft, order: Order) -> Order:
    """End an order that was cancelled, once its host takes machines again or it is said why it does not."""
    kept = host_work.release(draft, order)
    why = f"{order.why}; {kept}" if kept else order.why
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=order.why))
    return draft.put_order(departures.ended(draft, order, OrderState.CANCELLED, why=why))


def _why(order: Order) -> str:
    """Return by whom an order is given up, and what had gone wrong; kept once its host is being let go."""
    failed = reasons.failures(order)
    return order.why or (f"{order.given_up}: {failed[0].reason}" if failed else order.given_up)


def _called_off(order: Order) -> str:
    names = machine_names(step.name for step in order.driven)
    return f"its driver is asked to call off what runs: {names}"
