"""Orders: show them, and what they wait for; cancel, retry and abandon them."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import OrdersQuery
from forewarn.api.errors import documented
from forewarn.api.hosts import answered
from forewarn.api.paths import Id, listed, order_id, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
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
    events = [operator.noted_event(each.event, each.told, each.impact) for each in view.events]
    return JSONResponse({"order": operator.noted_order(view.order, view.notice), "events": events})


@router.post(
    "/v1/orders/{id}/cancel",
    summary="Call an order off",
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409),
)
async def cancel_order(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Call an order off, with all its events; too late once one has started."""
    wanted = order_id(id)
    placed = await service.run(lambda: service.plane.cancel_order(wanted, by=caller))
    return answered(placed, status=200)


@router.post(
    "/v1/orders/{id}/retry",
    summary="Carry out the failed steps again",
    status_code=202,
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409),
)
async def retry_order(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Carry out the failed steps of an order once more."""
    wanted = order_id(id)
    placed = await service.run(lambda: service.plane.retry_order(wanted, by=caller))
    return answered(placed, status=202)


@router.post(
    "/v1/orders/{id}/abandon",
    summary="Give up a failed order",
    status_code=202,
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409),
)
async def abandon_order(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Give up an order that failed: its events leave, what was not done stays undone."""
    wanted = order_id(id)
    placed = await service.run(lambda: service.plane.abandon_order(wanted, by=caller))
    return answered(placed, status=202)
