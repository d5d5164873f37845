"""Projects: show what each has declared; the fleet is where that is changed."""

from forewarn.api.conditions import tag_of
from forewarn.api.queries import PageQuery, ProjectInPath
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading
from forewarn.core.access import Right
from forewarn.core.model.project import Project
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import ProjectAnswer
from forewarn.wire.projects import write_project

router = ApiRouter("projects")


@router.call("GET /v1/projects", "List projects", right=Right.SEE)
def list_projects(page: PageQuery, reads: CallerReading) -> Page[ProjectAnswer]:
    """List projects by name; a project's people see their own."""
    found, after = reads.views.projects(after=page.after, limit=page.limit)
    return Page(kind=ProjectAnswer, items=[ProjectAnswer.of(project) for project in found], next=after)


@router.call("GET /v1/projects/{name}", "Show a project", right=Right.SEE, errors=(404,))
def show_project(name: ProjectInPath, reads: CallerReading) -> WithStatus[ProjectAnswer]:
    """Show a project: when maintenance may disturb it, and whether it is for rehearsals.

    The ETag is that of its declaration.
    """
    return shown_project(reads.views.project(name))


def shown_project(project: Project, *, status: int = 200) -> WithStatus[ProjectAnswer]:
    """Show a project, with the ETag of its declaration."""
    return WithStatus(ProjectAnswer.of(project), status, tag_of(write_project(project)))
