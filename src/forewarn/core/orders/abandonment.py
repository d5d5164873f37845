"""An order that is given up: drivers are asked to call off what runs; it closes once nothing does."""

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.orders import departures, host_steps, host_work, reasons, stages, steps
from forewarn.core.words import Kind, OrderState, StepState


def begin(draft: Draft, order: Order, *, by: str) -> Order:
    """Give an order up: at once if nothing of it runs."""
    order = replace(order, terms=replace(order.terms, abandoned_by=by))
    if order.driven:
        draft.record(Kind.ORDER_ABANDONING, order, by=by, reason=_called_off(order))

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
    if not order.driven:
        return _close(draft, order)
    looks = [step.look_at for step in order.driven if step.look_at is not None]
    waiting = reasons.not_to_close(order)
    return draft.put_order(replace(order, waiting=waiting, due_at=min(looks, default=None)))


def _close(draft: Draft, order: Order) -> Order:
    by, failed = order.terms.abandoned_by, reasons.failures(order)
    why = f"{order.given_up}: {failed[0].reason}" if failed else order.given_up
    closed = departures.close(draft, order, why=why, by=by, kind=Kind.ORDER_ABANDONED)
    host_work.release(draft, closed)
    departures.leave_if_terminated(draft, closed)
    departures.wake_host_of(draft, closed)
    return draft.put_order(replace(draft.orders[order.id], state=OrderState.FAILED))


def _called_off(order: Order) -> str:
    names = ", ".join(step.name for step in order.driven)
    return f"its driver is asked to call off what runs: {names}"
