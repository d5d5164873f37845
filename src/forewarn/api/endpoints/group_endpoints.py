"""Groups: show them."""

from forewarn.api.queries import GroupInPath, ListQuery
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading
from forewarn.core.access import Right
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import GroupAnswer

router = ApiRouter("groups")


@router.call("GET /v1/groups", "List groups", right=Right.SEE, errors=(404,))
def list_groups(query: ListQuery, reads: CallerReading) -> Page[GroupAnswer]:
    """List groups by name; a standalone machine's own is not among them."""
    found, after = reads.narrowed(query.project).views.groups(after=query.after, limit=query.limit)
    return Page(kind=GroupAnswer, items=[GroupAnswer.of(group) for group in found], next=after)


@router.call("GET /v1/groups/{name}", "Show a group", right=Right.SEE, errors=(404,))
def show_group(name: GroupInPath, reads: CallerReading) -> GroupAnswer:
    """Show a group, and whether its guests listen."""
    return GroupAnswer.of(reads.views.group(name))
