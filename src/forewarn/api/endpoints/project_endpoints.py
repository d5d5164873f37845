"""Endpoints of projects and groups: show them, and declare or remove one."""

from collections.abc import Mapping
from typing import Annotated, Any

from starlette.requests import Request

from forewarn.api.inputs import (
    DeclaredNameInPath,
    GroupInPath,
    ListQuery,
    PageQuery,
    ProjectInPath,
    RawBodyInput,
)
from forewarn.api.request_headers import PutCondition, tag_of
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading, Service, WholeTx
from forewarn.core.access import Right
from forewarn.core.basic_types import GroupName, ProjectName
from forewarn.core.model.declaration import GroupSpec, group_spec
from forewarn.core.model.group import Group
from forewarn.core.model.project import Project
from forewarn.wire import declarations, fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import GroupAnswer, ProjectAnswer
from forewarn.wire.projects import write_project

router = ApiRouter("projects")


@router.call("GET /v1/projects", "List projects", right=Right.SEE)
def list_projects(page: PageQuery, reads: CallerReading) -> Page[ProjectAnswer]:
    """List projects by name. The users of a project see only their own."""
    found, after = reads.views.projects(after=page.after, limit=page.limit)
    return Page(kind=ProjectAnswer, items=[ProjectAnswer.of(project) for project in found], next=after)


@router.call("GET /v1/projects/{name}", "Show a project", right=Right.SEE)
def show_project(name: ProjectInPath, reads: CallerReading) -> WithStatus[ProjectAnswer]:
    """Return a project. The ETag is that of its declaration."""
    return _shown_project(reads.views.project(name))


def _shown_project(project: Project, *, status: int = 200) -> WithStatus[ProjectAnswer]:
    return WithStatus(ProjectAnswer.of(project), status, tag_of(write_project(project)))


@router.call("GET /v1/groups", "List groups", right=Right.SEE, tag="groups")
def list_groups(query: ListQuery, reads: CallerReading) -> Page[GroupAnswer]:
    """List groups by name. The groups of standalone machines are not listed."""
    found, after = reads.narrowed(query.project).views.groups(after=query.after, limit=query.limit)
    return Page(kind=GroupAnswer, items=[GroupAnswer.of(group) for group in found], next=after)


@router.call("GET /v1/groups/{name}", "Show a group", right=Right.SEE, tag="groups")
def show_group(name: GroupInPath, reads: CallerReading) -> WithStatus[GroupAnswer]:
    """Return a group. The ETag is that of its declaration."""
    return _shown_group(reads.views.group(name))


def _shown_group(group: Group, *, status: int = 200) -> WithStatus[GroupAnswer]:
    return WithStatus(GroupAnswer.of(group), status, tag_of(fleet.write_group(group_spec(group))))


GroupDeclaration = Annotated[Mapping[str, Any], RawBodyInput(declarations.GROUP_CHANGES)]
ProjectDeclaration = Annotated[Mapping[str, Any], RawBodyInput(declarations.PROJECT_CHANGES)]


@router.call(
    "PUT /v1/groups/{name}", "Create or change a group", also={201: "The group was created."}, tag="groups"
)
def put_group(
    name: DeclaredNameInPath,
    body: GroupDeclaration,
    condition: PutCondition,
    service: Service,
    tx: WholeTx,
) -> WithStatus[GroupAnswer]:
    """Create or change a group. Omitted fields stay as they are. Null resets a field to its default.

    The same applies to each key of `policy`. If the group moves to another project, its machines do too.
    """

    def change(present: GroupSpec | None) -> GroupSpec:
        about = "" if present is None else f"in project {present.project}"
        condition.check(f'group "{name}"', present, fleet.write_group, about=about)
        return declarations.read_group(body, name=name, present=present)

    new = service.fleet.puts.put_group(tx, GroupName(name), change, by=service.by)
    return _shown_group(service.reads_in(tx).views.group(name), status=201 if new else 200)


@router.call("DELETE /v1/groups/{name}", "Delete a group", tag="groups")
def delete_group(name: GroupInPath, service: Service, tx: WholeTx) -> GroupAnswer:
    """Remove a group from the fleet. While it has machines: 409."""
    return GroupAnswer.of(service.fleet.puts.delete_group(tx, GroupName(name), by=service.by))


@router.call(
    "PUT /v1/projects/{name}",
    "Create or change a project",
    also={201: "The project was created."},
)
def put_project(
    name: DeclaredNameInPath,
    body: ProjectDeclaration,
    condition: PutCondition,
    service: Service,
    tx: WholeTx,
) -> WithStatus[ProjectAnswer]:
    """Create or change a project. Omitted fields stay as they are. Null resets a field to its default."""
    own = ProjectName(name)

    def change(present: Project | None) -> Project:
        condition.check(f'project "{name}"', present, write_project)
        return declarations.read_one_project(body, name=name, present=present)

    new = service.fleet.puts.put_project(tx, own, change, by=service.by)
    return _shown_project(service.reads_in(tx).views.project(own), status=201 if new else 200)


@router.call("DELETE /v1/projects/{name}", "Delete a project")
def delete_project(name: ProjectInPath, request: Request, service: Service, tx: WholeTx) -> ProjectAnswer:
    """Remove a project with its tokens and webhooks. While it has groups or machines: 409."""
    tx.after_commit(request.app.state.authenticator.forget)  # the tokens of the project are gone
    return ProjectAnswer.of(service.fleet.puts.delete_project(tx, name, by=service.by))
