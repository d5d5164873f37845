"""Projects: show what each has declared; the fleet is where that is changed."""

from forewarn.api.queries import PageQuery, ProjectInPath
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading
from forewarn.core.access import Right
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import ProjectAnswer

router = ApiRouter("projects")


@router.call("GET /v1/projects", "List projects", right=Right.SEE)
def list_projects(page: PageQuery, reads: CallerReading) -> Page[ProjectAnswer]:
    """List projects by name; a project's people see their own."""
    found, after = reads.views.projects(after=page.after, limit=page.limit)
    return Page(kind=ProjectAnswer, items=[ProjectAnswer.of(project) for project in found], next=after)


@router.call("GET /v1/projects/{name}", "Show a project", right=Right.SEE, errors=(404,))
def show_project(name: ProjectInPath, reads: CallerReading) -> ProjectAnswer:
    """Show a project: when maintenance may disturb it, and whether it is for rehearsals."""
    return ProjectAnswer.of(reads.views.project(name))
