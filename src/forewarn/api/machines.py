"""Machines: show, declare, remove, and order something to be done to one."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from fastapi.responses import JSONResponse
from pydantic import WithJsonSchema

from forewarn.api import shapes
from forewarn.api.bodies import MachineOrderBody, MachinesQuery, ProjectQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Name, known_name, listed, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service, Services
from forewarn.api.terms import order_request_of
from forewarn.control.orders.placing import Placed
from forewarn.control.views import MachineView
from forewarn.core.errors import Invalid
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.policy import ONLY_IF_ENABLED
from forewarn.core.words import Action, GroupName, HostName, ProjectName
from forewarn.wire import fleet, operator
from forewarn.wire.fields import object_schema

router = APIRouter(route_class=GuardedRoute, tags=["machines"])

Declaration = Annotated[dict[str, Any], Body(), WithJsonSchema(object_schema(fleet.MACHINE))]
Project = Annotated[ProjectQuery, Query()]

NOT_ENABLED = "the feature is not enabled for its group, no machine of it polls: done at once"
NEVER_TOLD = "a start makes no event"


@router.get(
    "/v1/machines", summary="List machines", response_model=shapes.Machines, responses=documented(404)
)
async def list_machines(query: Annotated[MachinesQuery, Query()], service: Service) -> JSONResponse:
    """List machines by project and name."""
    project = project_name(query.project)
    group = None if query.group is None else GroupName(query.group)
    host = None if query.host is None else HostName(query.host)
    found, after = await service.run(
        lambda: service.views.only(project).machines(
            after=query.after, limit=query.limit, group=group, host=host
        )
    )
    return listed("machines", found, after, shown)


@router.get(
    "/v1/machines/{name}",
    summary="Show a machine",
    response_model=shapes.OneMachine,
    responses=documented(404, 409),
)
async def show_machine(name: Name, query: Project, service: Service) -> JSONResponse:
    """Show a machine, whether its group listens (`enabled`), and when it was last seen."""
    name, project = known_name(name, "machine"), project_name(query.project)
    view = await service.run(lambda: service.views.machine(name, project=project))
    return JSONResponse({"machine": shown(view)})


@router.put(
    "/v1/machines/{name}",
    summary="Add or change a machine",
    response_model=shapes.OneMachine,
    responses={
        201: {"model": shapes.OneMachine, "description": "The machine is new."},
        **documented(404, 409, 413),
    },
)
async def put_machine(
    name: Name, body: Declaration, query: Project, service: Service, caller: Caller
) -> JSONResponse:
    """Add a machine, or change one: what the body leaves out stays as it is.

    Another `host` says that somebody has moved it there; another `name` renames it.
    """
    declared = fleet.read_machine(body, name=name, present=None)
    project = project_name(query.project)
    if "project" in body:
        _check_same(project or declared.project, declared.project, "as in the query")
        project = declared.project
    view, created = await service.run(lambda: _put(service, name, body, project, caller))
    return JSONResponse({"machine": shown(view)}, status_code=201 if created else 200)


@router.delete(
    "/v1/machines/{name}",
    summary="Remove a machine",
    response_model=shapes.OneMachine,
    responses=documented(404, 409),
)
async def delete_machine(name: Name, query: Project, service: Service, caller: Caller) -> JSONResponse:
    """Take a machine out of the fleet; it leaves the events that name it."""
    name, project = known_name(name, "machine"), project_name(query.project)
    view = await service.run(lambda: _delete(service, name, project, caller))
    return JSONResponse({"machine": shown(view)})


def shown(view: MachineView) -> dict[str, object]:
    """Write a machine as it is shown."""
    return operator.machine(view.machine, view.group, view.last_seen)


def why_no_event(placed: Placed) -> str | None:
    """Say why nobody is told of an order, or not yet; None if somebody is."""
    order = placed.order
    if placed.events:
        return None
    if order.waiting:
        return "; ".join(f"{each.what}: {each.reason}" for each in order.waiting)
    if order.action is Action.START:
        return NEVER_TOLD
    return NOT_ENABLED if order.action in ONLY_IF_ENABLED else order.why or None


def _put(
    service: Services, name: str, body: dict[str, Any], project: ProjectName | None, by: str
) -> tuple[MachineView, bool]:
    created = False

    def change(present: MachineSpec | None) -> MachineSpec:
        nonlocal created
        created = present is None
        # A new machine is in the project that the query names, if its declaration does not say.
        given = {"project": project, **body} if created and project else body
        return fleet.read_machine(given, name=name, present=present)

    if project is not None and isinstance(body.get("group"), str):
        _check_same(service.views.group(body["group"]).project, project, "the project of its group")
    machine = service.plane.put_machine(name, project=project, change=change, by=by)
    return service.views.machine(machine.name, project=machine.project), created


def _check_same(expected: ProjectName, got: ProjectName, why: str) -> None:
    if got != expected:
        raise Invalid(f'project: expected "{expected}", {why}, got "{got}"')


def _delete(service: Services, name: str, project: ProjectName | None, by: str) -> MachineView:
    view = service.views.machine(name, project=project)
    service.plane.delete_machine(name, project=view.machine.project, by=by)
    return view


SUMMARIES = {
    Action.RESTART: "Restart a machine",
    Action.REDEPLOY: "Move a machine to another host",
    Action.FREEZE: "Pause a machine for seconds",
    Action.EVICT: "Evict a spot machine",
    Action.TERMINATE: "Terminate a machine",
    Action.START: "Start a stopped machine",
}


def _add_order(action: Action, summary: str) -> None:
    @router.post(
        f"/v1/machines/{{name}}/{action}",
        summary=summary,
        operation_id=f"{action}_machine",
        status_code=202,
        response_model=shapes.OrderOnMachine,
        responses=documented(404, 409, 413, 429),
    )
    async def order_machine(
        name: Name, query: Project, service: Service, caller: Caller, body: MachineOrderBody | None = None
    ) -> JSONResponse:
        name, project = known_name(name, "machine"), project_name(query.project)
        request = order_request_of(caller, body)
        placed = await service.run(
            lambda: service.plane.order_machine(name, action, request, project=project)
        )
        first = operator.event(placed.events[0]) if placed.events else None
        answer = {"order": operator.order(placed.order), "event": first, "reason": why_no_event(placed)}
        return JSONResponse(answer, status_code=202)


for _action, _summary in SUMMARIES.items():
    _add_order(_action, _summary)
