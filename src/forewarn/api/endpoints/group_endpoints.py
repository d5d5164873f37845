"""Groups: show them."""

from forewarn.api.conditions import tag_of
from forewarn.api.queries import GroupInPath, ListQuery
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading
from forewarn.core.access import Right
from forewarn.core.model.declaration import group_spec
from forewarn.core.model.group import Group
from forewarn.wire import fleet
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import GroupAnswer

router = ApiRouter("groups")


@router.call("GET /v1/groups", "List groups", right=Right.SEE, errors=(404,))
def list_groups(query: ListQuery, reads: CallerReading) -> Page[GroupAnswer]:
    """List groups by name; a standalone machine's own is not among them."""
    found, after = reads.narrowed(query.project).views.groups(after=query.after, limit=query.limit)
    return Page(kind=GroupAnswer, items=[GroupAnswer.of(group) for group in found], next=after)


@router.call("GET /v1/groups/{name}", "Show a group", right=Right.SEE, errors=(404,))
def show_group(name: GroupInPath, reads: CallerReading) -> WithStatus[GroupAnswer]:
    """Show a group, and whether its guests listen; the ETag is that of its declaration."""
    return shown_group(reads.views.group(name))


def shown_group(group: Group, *, status: int = 200) -> WithStatus[GroupAnswer]:
    """Show a group, with the ETag of its declaration."""
    return WithStatus(GroupAnswer.of(group), status, tag_of(fleet.write_group(group_spec(group))))
