"""Endpoints of orders: show and change them, and report the work of external drivers."""

from collections.abc import Callable

from forewarn.api.inputs import ListQuery, OrderInPath
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, MACHINE, free_text, one_of
from forewarn.api.request_models import Body, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, ScopedTx, Service
from forewarn.control.orders.order_use_cases import OrderUseCases, Placed
from forewarn.core.access import Right
from forewarn.core.basic_types import HostName, MachineName, OrderId, OrderState
from forewarn.core.filters import OrderFilter
from forewarn.store.batch import ScopedTransaction
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventDetailAnswer
from forewarn.wire.answers.order_answers import (
    HeartbeatAnswer,
    OrderAnswer,
    OrderDetailAnswer,
    OrderDetailWithEventsAnswer,
    OrderWithEventsAnswer,
)

router = ApiRouter("orders")


@request_model
class OrdersQuery(ListQuery):
    """A filter of orders."""

    state: OrderState | None = nullable(one_of(OrderState), "Only orders in this state.")
    open: bool = field(FLAG_IN_QUERY, "Only open orders.", default=False)
    machine: MachineName | None = nullable(
        MACHINE, "Only orders on this machine, or with an event or a step for it."
    )
    host: HostName | None = nullable(HOST, "Only orders on this host, and open orders on the machines on it.")


@request_model
class FailureBody(Body):
    """A failure of external work."""

    reason: str = field(free_text(), "Why the work failed.", default="failed")


@router.call("GET /v1/orders", "List orders", right=Right.SEE)
def list_orders(query: OrdersQuery, reads: CallerReading) -> Page[OrderAnswer]:
    """List open and past orders, newest first."""
    found, after = reads.narrowed(query.project).views.orders(
        query.build(OrderFilter, only_open=query.open),
        after=query.after,
        limit=query.limit,
    )
    return Page(kind=OrderAnswer, items=[OrderAnswer.of(order) for order in found], next=after)


@router.call("GET /v1/orders/{id}", "Show an order", right=Right.SEE)
def show_order(id: OrderInPath, reads: CallerReading) -> OrderDetailWithEventsAnswer:
    """Return an order with its stages and steps, the reasons why it waits, its events and their notice."""
    view = reads.views.order(id)
    return OrderDetailWithEventsAnswer(
        order=OrderDetailAnswer.of(view.order, view),
        events=tuple(EventDetailAnswer.of(each.event, each) for each in view.events),
    )


def _add_verb(
    verb: str,
    summary: str,
    description: str,
    carry_out: Callable[[OrderUseCases, ScopedTransaction, OrderId, str], Placed],
    *,
    right: Right | None = None,
    status: int = 200,
) -> None:
    """Add an endpoint that needs only an order's id. `carry_out` takes the id and the caller."""

    @router.call(
        f"POST /v1/orders/{{id}}/{verb}",
        summary,
        right=right,
        status=status,
        description=description,
        operation_id=f"{verb}_order",
    )
    def on_order(id: OrderInPath, service: Service, tx: ScopedTx) -> OrderWithEventsAnswer:
        return OrderWithEventsAnswer.like(carry_out(service.orders, tx, id, service.by))


_add_verb(
    "cancel",
    "Cancel an order",
    "Cancel an order with all its events. After the start of an event this is not possible: 409.",
    lambda orders, tx, order, by: orders.cancel_order(tx, order, by=by),
    right=Right.USE,
)
_add_verb(
    "retry",
    "Retry an order",
    "Start the failed steps of an order again. An external driver does not start by itself: it must report "
    "the work again.",
    lambda orders, tx, order, by: orders.retry_order(tx, order, by=by),
    right=Right.USE,
    status=202,
)
_add_verb(
    "abandon",
    "Abandon an order",
    "Give up an order that failed or has started. Guests no longer see its events, and remaining work is not "
    "done. Drivers are asked to cancel running steps. If a driver cannot, the order ends with that step.",
    lambda orders, tx, order, by: orders.abandon_order(tx, order, by=by),
    right=Right.USE,
    status=202,
)
_add_verb(
    "complete",
    "Report completed work",
    "External driver only: report that all started work of the order is done.",
    lambda orders, tx, order, by: orders.complete_order(tx, order, by=by),
)


@router.call("POST /v1/orders/{id}/heartbeat", "Send a heartbeat")
def heartbeat_order(id: OrderInPath, service: Service, tx: ScopedTx) -> HeartbeatAnswer:
    """External driver only: report that the work continues. Without heartbeats it counts as failed.

    If `stop` is not null, stop the work: the order was abandoned, or a hold stopped it.
    """
    placed = service.orders.heartbeat(tx, id)
    return HeartbeatAnswer.like(placed, stop=placed.order.given_up)


@router.call("POST /v1/orders/{id}/fail", "Report failed work")
def fail_order(
    id: OrderInPath, service: Service, tx: ScopedTx, body: FailureBody | None = None
) -> OrderWithEventsAnswer:
    """External driver only: report that the work of the order failed. A person can retry or abandon it."""
    reason = (body or FailureBody()).reason
    return OrderWithEventsAnswer.like(service.orders.fail_order(tx, id, by=service.by, why=reason))
