"""Orders: show them, and what they wait for; cancel, retry and abandon them.

Whoever does the work of an order outside reports how it goes: done, failed, still at it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import FailureBody, OrdersQuery
from forewarn.api.errors import documented
from forewarn.api.hosts import answered
from forewarn.api.paths import Id, listed, order_id, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.control.orders.placing import Placed
from forewarn.control.plane import Plane
from forewarn.core.words import OrderId
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["orders"])


@router.get("/v1/orders", summary="List orders", response_model=shapes.Orders, responses=documented(404))
async def list_orders(query: Annotated[OrdersQuery, Query()], service: Service) -> JSONResponse:
    """List orders, newest first, open or over."""
    project = project_name(query.project)
    found, after = await service.run(
        lambda: service.views.only(project).orders(state=query.state, after=query.after, limit=query.limit)
    )
    return listed("orders", found, after, operator.order)


@router.get(
    "/v1/orders/{id}",
    summary="Show an order",
    response_model=shapes.NotedOrderWithEvents,
    responses=documented(404),
)
async def show_order(id: Id, service: Service) -> JSONResponse:
    """Show an order with its stages and steps, what it waits for, all its events, and what notice was got."""
    wanted = order_id(id)
    view = await service.run(lambda: service.views.order(wanted))
    events = [operator.noted_event(each.event, each.notices, each.impact) for each in view.events]
    return JSONResponse({"order": operator.noted_order(view.order, view.notice), "events": events})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What may be said of an order, by its id alone."""

    name: str
    summary: str
    description: str
    status: int
    say: Callable[[Plane, OrderId, str], Placed]  # of which order, and who says it


def _add_verb(verb: Verb) -> None:
    """Have a verb said with POST."""

    @router.post(
        f"/v1/orders/{{id}}/{verb.name}",
        summary=verb.summary,
        description=verb.description,
        operation_id=f"{verb.name}_order",
        status_code=verb.status,
        response_model=shapes.OrderWithEvents,
        responses=documented(404, 409),
    )
    async def say(id: Id, service: Service, caller: Caller) -> JSONResponse:
        wanted = order_id(id)
        placed = await service.run(lambda: verb.say(service.plane, wanted, caller))
        return answered(placed, status=verb.status)


VERBS = (
    Verb(
        name="cancel",
        summary="Call an order off",
        description="Call an order off, with all its events; too late once one has started.",
        status=200,
        say=lambda plane, order, by: plane.cancel_order(order, by=by),
    ),
    Verb(
        name="retry",
        summary="Carry out the failed steps again",
        description=(
            "Carry out the failed steps of an order once more. With an external driver nobody begins them "
            "by itself: whoever does the work reports."
        ),
        status=202,
        say=lambda plane, order, by: plane.retry_order(order, by=by),
    ),
    Verb(
        name="abandon",
        summary="Give up a failed order",
        description="Give up an order that failed: its events leave, what was not done stays undone.",
        status=202,
        say=lambda plane, order, by: plane.abandon_order(order, by=by),
    ),
    # Reports of work that is done outside; that it failed is said with a reason, below.
    Verb(
        name="complete",
        summary="Report that the work is done",
        description="Say that all work of an order with an external driver that is under way is done.",
        status=200,
        say=lambda plane, order, by: plane.complete_order(order, by=by),
    ),
    Verb(
        name="heartbeat",
        summary="Report that the work goes on",
        description="Say that work of an order with an external driver goes on; long silence is a failure.",
        status=200,
        say=lambda plane, order, _: plane.heartbeat(order),
    ),
)
for _verb in VERBS:
    _add_verb(_verb)


@router.post(
    "/v1/orders/{id}/fail",
    summary="Report that the work failed",
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409, 413),
)
async def fail_order(
    id: Id, service: Service, caller: Caller, body: FailureBody | None = None
) -> JSONResponse:
    """Say that the work of an order with an external driver failed; a person retries or abandons it."""
    wanted, why = order_id(id), (body or FailureBody()).reason
    placed = await service.run(lambda: service.plane.fail_order(wanted, by=caller, why=why))
    return answered(placed, status=200)
