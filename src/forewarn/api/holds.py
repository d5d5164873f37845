"""Holds: show, set and lift what keeps anything new from being announced or started."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import HoldBody
from forewarn.api.errors import documented
from forewarn.api.paths import Id, hold_id
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import HostName, ProjectName
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["holds"])


@router.get("/v1/holds", summary="List holds", response_model=shapes.Holds, responses=documented())
async def list_holds(service: Service) -> JSONResponse:
    """List what is held, and why, oldest first."""
    found = await service.run(service.views.holds)
    return JSONResponse({"holds": [operator.hold(hold) for hold in found], "next": None})


@router.post(
    "/v1/holds",
    summary="Hold the fleet, a project or a host",
    status_code=201,
    response_model=shapes.OneHold,
    responses=documented(404, 409, 413),
)
async def set_hold(body: HoldBody, service: Service, caller: Caller) -> JSONResponse:
    """Let nothing new be announced or started; polls and approvals go on."""
    request = OrderRequest(by=caller, reason=body.reason)
    project = None if body.project is None else ProjectName(body.project)
    host = None if body.host is None else HostName(body.host)
    hold = await service.run(lambda: service.plane.hold(request, project=project, host=host))
    return JSONResponse({"hold": operator.hold(hold)}, status_code=201)


@router.post(
    "/v1/holds/{id}/release",
    summary="Lift a hold",
    response_model=shapes.OneHold,
    responses=documented(404),
)
async def release_hold(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Lift a hold; what waited for it goes on."""
    wanted = hold_id(id)
    hold = await service.run(lambda: service.plane.release(wanted, by=caller))
    return JSONResponse({"hold": operator.hold(hold)})
