"""Projects: show what each has declared; the fleet is where that is changed."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import PageQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Name, known_name, listed
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Service
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["projects"])


@router.get("/v1/projects", summary="List projects", response_model=shapes.Projects, responses=documented())
async def list_projects(page: Annotated[PageQuery, Query()], service: Service) -> JSONResponse:
    """List projects by name; a project's people see their own."""
    found, after = await service.run(lambda: service.views.projects(after=page.after, limit=page.limit))
    return listed("projects", found, after, operator.project)


@router.get(
    "/v1/projects/{name}",
    summary="Show a project",
    response_model=shapes.OneProject,
    responses=documented(404),
)
async def show_project(name: Name, service: Service) -> JSONResponse:
    """Show a project: when maintenance may disturb it, and whether it is for rehearsals."""
    name = known_name(name, "project")
    project = await service.run(lambda: service.views.project(name))
    return JSONResponse({"project": operator.project(project)})
