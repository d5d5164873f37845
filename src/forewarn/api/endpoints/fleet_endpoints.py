"""The whole fleet, as it is declared."""

from collections.abc import Mapping
from typing import Annotated, Any

from starlette.requests import Request

from forewarn.api.declared import Query, declared, given
from forewarn.api.inputs import TableInBody
from forewarn.api.request_fields import FLAG_IN_QUERY
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.wire import fleet
from forewarn.wire.answers.fleet_answers import AppliedFleetAnswer, FleetAnswer
from forewarn.wire.fields import object_schema

router = ApiRouter("fleet")

Declaration = Annotated[Mapping[str, Any], TableInBody(object_schema(fleet.FLEET))]


@declared
class FleetQuery(Query):
    """How a fleet is applied."""

    dry_run: bool = given(FLAG_IN_QUERY, "Only say what would change.", default=False)


@router.call("GET /v1/fleet", "Show the fleet as it is declared")
async def show_fleet(service: Service) -> FleetAnswer:
    """Show what would have to be declared to get the present fleet."""
    return FleetAnswer(fleet=fleet.write_fleet(await service.run(service.fleet.views.fleet)))


@router.call("PUT /v1/fleet", "Make the fleet what is declared", errors=(409, 413))
async def put_fleet(
    body: Declaration, query: FleetQuery, request: Request, service: Service, caller: CallerName
) -> AppliedFleetAnswer:
    """Add, change and remove what differs, and say in a line each what that is; all of it or nothing.

    A machine that is known stays on the host it is on.
    """
    # What a GET answers may be sent back as it is.
    spec = fleet.read_fleet(body["fleet"] if body.keys() == {"fleet"} else body)
    changes = await service.run(
        lambda: service.fleet.declarations.apply_fleet(spec, by=caller, dry_run=query.dry_run)
    )
    request.app.state.authenticator.forget()  # a project that is gone has no tokens
    present = await service.run(service.fleet.views.fleet)
    return AppliedFleetAnswer(fleet=fleet.write_fleet(present), changes=tuple(changes))
