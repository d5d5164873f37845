"""Reports of whoever does the work of an order outside: done, failed, still at it."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import FailureBody
from forewarn.api.errors import documented
from forewarn.api.hosts import answered
from forewarn.api.paths import Id, order_id
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service

router = APIRouter(route_class=GuardedRoute, tags=["orders"])


@router.post(
    "/v1/orders/{id}/complete",
    summary="Report that the work is done",
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409),
)
async def complete_order(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Say that all work of an order with an external driver that is under way is done."""
    wanted = order_id(id)
    placed = await service.run(lambda: service.plane.complete_order(wanted, by=caller))
    return answered(placed, status=200)


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


@router.post(
    "/v1/orders/{id}/heartbeat",
    summary="Report that the work goes on",
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409),
)
async def heartbeat(id: Id, service: Service) -> JSONResponse:
    """Say that the work of an order with an external driver goes on; silence for too long is a failure."""
    wanted = order_id(id)
    placed = await service.run(lambda: service.plane.heartbeat(wanted))
    return answered(placed, status=200)
