"""The whole fleet, as it is declared."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from fastapi.responses import JSONResponse
from pydantic import WithJsonSchema

from forewarn.api import shapes
from forewarn.api.bodies import FleetQuery
from forewarn.api.errors import documented
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.wire import fleet
from forewarn.wire.fields import object_schema

router = APIRouter(route_class=GuardedRoute, tags=["fleet"])

Declaration = Annotated[dict[str, Any], Body(), WithJsonSchema(object_schema(fleet.FLEET))]


@router.get(
    "/v1/fleet",
    summary="Show the fleet as it is declared",
    response_model=shapes.Fleet,
    responses=documented(),
)
async def show_fleet(service: Service) -> JSONResponse:
    """Show what would have to be declared to get the present fleet."""
    spec = await service.run(service.views.fleet)
    return JSONResponse({"fleet": fleet.write_fleet(spec)})


@router.put(
    "/v1/fleet",
    summary="Make the fleet what is declared",
    response_model=shapes.Fleet,
    responses=documented(409, 413),
)
async def put_fleet(
    body: Declaration, query: Annotated[FleetQuery, Query()], service: Service, caller: Caller
) -> JSONResponse:
    """Add, change and remove what differs, and say in a line each what that is; all of it or nothing.

    A machine that is known stays on the host it is on.
    """
    # What a GET answers may be sent back as it is.
    spec = fleet.read_fleet(body["fleet"] if body.keys() == {"fleet"} else body)
    changes = await service.run(lambda: service.plane.apply_fleet(spec, by=caller, dry_run=query.dry_run))
    present = await service.run(service.views.fleet)
    return JSONResponse({"fleet": fleet.write_fleet(present), "changes": list(changes)})
