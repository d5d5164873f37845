"""Hosts and groups: show them, and order something to be done to a host."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import HostOrderBody, ListQuery, MaintenanceBody, PageQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Name, known_name, listed, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.api.terms import order_request_of
from forewarn.control.orders.placing import Placed
from forewarn.core.words import Action, Work
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute)

Page = Annotated[PageQuery, Query()]


@router.get(
    "/v1/groups",
    tags=["groups"],
    summary="List groups",
    response_model=shapes.Groups,
    responses=documented(404),
)
async def list_groups(query: Annotated[ListQuery, Query()], service: Service) -> JSONResponse:
    """List groups by name; a standalone machine's own is not among them."""
    project = project_name(query.project)
    found, after = await service.run(
        lambda: service.views.only(project).groups(after=query.after, limit=query.limit)
    )
    return listed("groups", found, after, operator.group)


@router.get(
    "/v1/groups/{name}",
    tags=["groups"],
    summary="Show a group",
    response_model=shapes.OneGroup,
    responses=documented(404),
)
async def show_group(name: Name, service: Service) -> JSONResponse:
    """Show a group, and whether its guests listen."""
    name = known_name(name, "group")
    group = await service.run(lambda: service.views.group(name))
    return JSONResponse({"group": operator.group(group)})


@router.get(
    "/v1/hosts", tags=["hosts"], summary="List hosts", response_model=shapes.Hosts, responses=documented()
)
async def list_hosts(page: Page, service: Service) -> JSONResponse:
    """List hosts by name."""
    found, after = await service.run(lambda: service.views.hosts(after=page.after, limit=page.limit))
    return listed("hosts", found, after, operator.host)


@router.get(
    "/v1/hosts/{name}",
    tags=["hosts"],
    summary="Show a host",
    response_model=shapes.OneHost,
    responses=documented(404),
)
async def show_host(name: Name, service: Service) -> JSONResponse:
    """Show a host and what it carries."""
    name = known_name(name, "host")
    host, machines = await service.run(lambda: service.views.host(name))
    return JSONResponse({"host": operator.host(host, machines)})


@router.post(
    "/v1/hosts/{name}/maintenance",
    tags=["hosts"],
    summary="Maintain a host",
    status_code=202,
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409, 413),
)
async def maintain_host(name: Name, body: MaintenanceBody, service: Service, caller: Caller) -> JSONResponse:
    """Freeze, reboot or redeploy all that a host carries, one update domain of a group at a time."""
    name, request = known_name(name, "host"), order_request_of(caller, body)
    work = Work(body.action)
    placed = await service.run(lambda: service.plane.order_host(name, Action.MAINTENANCE, request, work=work))
    return answered(placed, status=202)


def answered(placed: Placed, *, status: int) -> JSONResponse:
    """Answer with an order and its events."""
    events = [operator.event(event) for event in placed.events]
    return JSONResponse({"order": operator.order(placed.order), "events": events}, status_code=status)


SUMMARIES = {
    Action.DEGRADE: "Say that a host is going to fail: its machines move within days",
    Action.FAIL: "Say that a host has failed: its machines come back on others",
    Action.RESTORE: "Say that a host is sound again",
    Action.CORDON: "Let a host take no more machines",
    Action.UNCORDON: "Let a host take machines again",
}


def _add_order(action: Action, summary: str) -> None:
    @router.post(
        f"/v1/hosts/{{name}}/{action}",
        tags=["hosts"],
        summary=summary,
        operation_id=f"{action}_host",
        status_code=202,
        response_model=shapes.OrderWithEvents,
        responses=documented(404, 409, 413),
    )
    async def order_host(
        name: Name, service: Service, caller: Caller, body: HostOrderBody | None = None
    ) -> JSONResponse:
        name, request = known_name(name, "host"), order_request_of(caller, body)
        placed = await service.run(lambda: service.plane.order_host(name, action, request))
        return answered(placed, status=202)


for _action, _summary in SUMMARIES.items():
    _add_order(_action, _summary)
