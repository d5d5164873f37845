"""Service time: read it and, with a manual clock, turn it."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import AdvanceBody
from forewarn.api.errors import documented
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service, Services
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["clock"])


@router.get("/v1/clock", summary="Tell the time", response_model=shapes.Clock, responses=documented())
async def show_clock(service: Service) -> JSONResponse:
    """Tell service time, and how it runs."""
    return JSONResponse(_shown(service))


@router.post(
    "/v1/clock/advance",
    summary="Turn a manual clock",
    response_model=shapes.Clock,
    responses=documented(409, 413),
)
async def advance_clock(body: AdvanceBody, service: Service, caller: Caller) -> JSONResponse:
    """Turn a manual clock forward; answered when all that fell due on the way is done."""
    await service.run(lambda: service.timekeeper.advance(body.seconds, by=caller))
    return JSONResponse(_shown(service))


def _shown(service: Services) -> dict[str, object]:
    keeper = service.timekeeper
    return {"kind": keeper.kind, "now": operator.time(keeper.now()), "speed": keeper.speed}
