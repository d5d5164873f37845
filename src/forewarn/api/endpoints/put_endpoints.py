"""Hosts, groups and projects, declared and removed one at a time."""

from collections.abc import Mapping
from typing import Annotated, Any

from starlette.requests import Request

from forewarn.api.conditions import PutCondition
from forewarn.api.endpoints.group_endpoints import shown_group
from forewarn.api.endpoints.host_endpoints import shown_host
from forewarn.api.endpoints.project_endpoints import shown_project
from forewarn.api.inputs import InPath, TableInBody
from forewarn.api.queries import GroupInPath, HostInPath, ProjectInPath
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, Service
from forewarn.core.model.declaration import GroupSpec, HostSpec
from forewarn.core.model.project import Project
from forewarn.core.words import GroupName, HostName, ProjectName
from forewarn.store.batch import Transaction
from forewarn.wire import fields, fleet
from forewarn.wire.answers.fleet_answers import GroupAnswer, HostWithMachinesAnswer, ProjectAnswer
from forewarn.wire.projects import write_project

router = ApiRouter("fleet")

NameInPath = Annotated[str, InPath(fields.name, "Its name.")]
HostDeclaration = Annotated[Mapping[str, Any], TableInBody(fleet.HOST_CHANGES)]
GroupDeclaration = Annotated[Mapping[str, Any], TableInBody(fleet.GROUP_CHANGES)]
ProjectDeclaration = Annotated[Mapping[str, Any], TableInBody(fleet.PROJECT_CHANGES)]

_ERRORS = (404, 409, 413)


@router.call("PUT /v1/hosts/{name}", "Add or change a host", errors=_ERRORS, also={201: "The host is new."})
async def put_host(
    name: NameInPath, body: HostDeclaration, condition: PutCondition, service: Service, caller: CallerName
) -> WithStatus[HostWithMachinesAnswer]:
    """Add a host, or change one: what the body leaves out stays as it is, what is null goes."""

    def change(present: HostSpec | None) -> HostSpec:
        condition.check(f'host "{name}"', None if present is None else fleet.write_host(present))
        return fleet.read_host(body, name=name, present=present)

    def put(tx: Transaction) -> WithStatus[HostWithMachinesAnswer]:
        new = service.fleet.puts.put_host(tx, HostName(name), change, by=caller)
        return shown_host(service.reads_in(tx).fleet.views, name, status=201 if new else 200)

    return await service.run_whole(put)


@router.call("DELETE /v1/hosts/{name}", "Remove a host", errors=_ERRORS)
async def delete_host(name: HostInPath, service: Service, caller: CallerName) -> HostWithMachinesAnswer:
    """Take a host out of the fleet; 409 while it carries a machine, or something is ordered on it."""

    def delete(tx: Transaction) -> HostWithMachinesAnswer:
        shown = shown_host(service.reads_in(tx).fleet.views, name).body
        service.fleet.puts.delete_host(tx, HostName(name), by=caller)
        return shown

    return await service.run_whole(delete)


@router.call(
    "PUT /v1/groups/{name}", "Add or change a group", errors=_ERRORS, also={201: "The group is new."}
)
async def put_group(
    name: NameInPath, body: GroupDeclaration, condition: PutCondition, service: Service, caller: CallerName
) -> WithStatus[GroupAnswer]:
    """Add a group, or change one: what the body leaves out stays as it is, what is null goes.

    So it is with each key of its policy.

    A group that gets another project takes its machines along.
    """

    def change(present: GroupSpec | None) -> GroupSpec:
        declaration = None if present is None else fleet.write_group(present)
        about = "" if present is None else f"in project {present.project}"
        condition.check(f'group "{name}"', declaration, about=about)
        return fleet.read_group(body, name=name, present=present)

    def put(tx: Transaction) -> WithStatus[GroupAnswer]:
        new = service.fleet.puts.put_group(tx, GroupName(name), change, by=caller)
        return shown_group(service.reads_in(tx).views.group(name), status=201 if new else 200)

    return await service.run_whole(put)


@router.call("DELETE /v1/groups/{name}", "Remove a group", errors=_ERRORS)
async def delete_group(name: GroupInPath, service: Service, caller: CallerName) -> GroupAnswer:
    """Take a group out of the fleet; 409 while it has machines."""
    return GroupAnswer.of(
        await service.run_whole(lambda tx: service.fleet.puts.delete_group(tx, GroupName(name), by=caller))
    )


@router.call(
    "PUT /v1/projects/{name}", "Add or change a project", errors=_ERRORS, also={201: "The project is new."}
)
async def put_project(
    name: NameInPath, body: ProjectDeclaration, condition: PutCondition, service: Service, caller: CallerName
) -> WithStatus[ProjectAnswer]:
    """Add a project, or change one: what the body leaves out stays as it is, what is null goes."""
    own = ProjectName(name)

    def change(present: Project | None) -> Project:
        condition.check(f'project "{name}"', None if present is None else write_project(present))
        return fleet.read_one_project(body, name=name, present=present)

    def put(tx: Transaction) -> WithStatus[ProjectAnswer]:
        new = service.fleet.puts.put_project(tx, own, change, by=caller)
        return shown_project(service.reads_in(tx).views.project(own), status=201 if new else 200)

    return await service.run_whole(put)


@router.call("DELETE /v1/projects/{name}", "Remove a project", errors=_ERRORS)
async def delete_project(
    name: ProjectInPath, request: Request, service: Service, caller: CallerName
) -> ProjectAnswer:
    """Take a project out of the fleet, with its tokens and webhooks; 409 while it has groups or machines."""
    gone = await service.run_whole(lambda tx: service.fleet.puts.delete_project(tx, name, by=caller))
    request.app.state.authenticator.forget()  # a project that is gone has no tokens
    return ProjectAnswer.of(gone)
