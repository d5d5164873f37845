"""Orders: show them, and what they wait for; cancel, retry and abandon them.

Programs that do the work of an order outside report how it goes: done, failed, still at it.
"""

from collections.abc import Callable

from forewarn.api.inputs import ListQuery, OrderInPath
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, MACHINE, free_text, one_of
from forewarn.api.request_parts import Body, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, ScopedTx, Service
from forewarn.control.orders.order_use_cases import OrderUseCases, Placed
from forewarn.core.access import Right
from forewarn.core.basic_types import HostName, MachineName, OrderId, OrderState
from forewarn.core.filters import OrderFilter
from forewarn.store.batch import ScopedTransaction
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventDetailAnswer, NoticeAnswer
from forewarn.wire.answers.order_answers import (
    HeartbeatAnswer,
    OrderDetailAnswer,
    OrderDetailWithEventsAnswer,
    OrderAnswer,
    OrderWithEventsAnswer,
)

router = ApiRouter("orders")


@declared
class OrdersQuery(ListQuery):
    """Which orders."""

    state: OrderState | None = maybe(one_of(OrderState), "Only orders in this state.")
    open: bool = given(FLAG_IN_QUERY, "Only those that are not over.", default=False)
    machine: MachineName | None = maybe(
        MACHINE, "Only those that this machine was ordered for, told of, or is to be touched by."
    )
    host: HostName | None = maybe(HOST, "Only those on this host, and open ones on machines that it carries.")


@declared
class FailureBody(Body):
    """Why work outside failed."""

    reason: str = given(free_text(), default="failed")


@router.call("GET /v1/orders", "List orders", right=Right.SEE, errors=(404,))
def list_orders(query: OrdersQuery, reads: CallerReading) -> Page[OrderAnswer]:
    """List orders, newest first, open or over."""
    found, after = reads.narrowed(query.project).views.orders(
        OrderFilter(state=query.state, only_open=query.open, machine=query.machine, host=query.host),
        after=query.after,
        limit=query.limit,
    )
    return Page(kind=OrderAnswer, items=[OrderAnswer.of(order) for order in found], next=after)


@router.call("GET /v1/orders/{id}", "Show an order", right=Right.SEE, errors=(404,))
def show_order(id: OrderInPath, reads: CallerReading) -> OrderDetailWithEventsAnswer:
    """Show an order with its stages and steps, what it waits for, all its events, and what notice was got."""
    view = reads.views.order(id)
    return OrderDetailWithEventsAnswer(
        order=OrderDetailAnswer.of(view.order, notice=NoticeAnswer.like(view.notice)),
        events=tuple(
            EventDetailAnswer.noted(
                each.event,
                each.notices,
                impact=each.impact,
                project=each.project,
                simulated=each.simulated,
                notice=each.notice,
            )
            for each in view.events
        ),
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
    """Add what can be asked for by an order's id alone; `carry_out` takes the order's id and the caller."""

    @router.call(
        f"POST /v1/orders/{{id}}/{verb}",
        summary,
        right=right,
        status=status,
        errors=(404, 409),
        description=description,
        operation_id=f"{verb}_order",
    )
    def on_order(
        id: OrderInPath, service: Service, tx: ScopedTx, caller: CallerName
    ) -> OrderWithEventsAnswer:
        placed = carry_out(service.orders, tx, id, caller)
        return OrderWithEventsAnswer.of(placed.order, placed.events)


_add_verb(
    "cancel",
    "Cancel an order",
    "Cancel an order, with all its events; too late once one has started.",
    lambda orders, tx, order, by: orders.cancel_order(tx, order, by=by),
    right=Right.USE,
)
_add_verb(
    "retry",
    "Carry out the failed steps again",
    "Carry out the failed steps of an order once more. With an external driver they do not begin by "
    "themselves: a report says that they are done.",
    lambda orders, tx, order, by: orders.retry_order(tx, order, by=by),
    right=Right.USE,
    status=202,
)
_add_verb(
    "abandon",
    "Abandon an order",
    "Abandon an order that failed or is under way: its events leave, what was not done stays undone. Drivers "
    "are asked to call off what still runs; what cannot be called off goes on, and the order ends with it.",
    lambda orders, tx, order, by: orders.abandon_order(tx, order, by=by),
    right=Right.USE,
    status=202,
)
# Reports of work that is done outside; that it failed is reported with a reason, below.
_add_verb(
    "complete",
    "Report that the work is done",
    "Report that all work of an order with an external driver that is under way is done.",
    lambda orders, tx, order, by: orders.complete_order(tx, order, by=by),
)


@router.call("POST /v1/orders/{id}/heartbeat", "Report that the work goes on", errors=(404, 409))
def heartbeat_order(id: OrderInPath, service: Service, tx: ScopedTx) -> HeartbeatAnswer:
    """Report that work of an order with an external driver goes on; long silence is a failure.

    `stop` says why the work should stop, if it should: the order was abandoned, or a hold stops it.
    """
    placed = service.orders.heartbeat(tx, id)
    return HeartbeatAnswer.of(placed.order, placed.events)


@router.call("POST /v1/orders/{id}/fail", "Report that the work failed", errors=(404, 409, 413))
def fail_order(
    id: OrderInPath, service: Service, tx: ScopedTx, caller: CallerName, body: FailureBody | None = None
) -> OrderWithEventsAnswer:
    """Report that the work of an order with an external driver failed; a person retries or abandons it."""
    placed = service.orders.fail_order(tx, id, by=caller, why=(body or FailureBody()).reason)
    return OrderWithEventsAnswer.of(placed.order, placed.events)
