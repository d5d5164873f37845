"""The calendar feed: what is coming, where people look anyway."""

from starlette.responses import Response

from forewarn.api.declared import Query, declared, maybe
from forewarn.api.request_fields import PROJECT
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, KnownCaller
from forewarn.core.access import Right
from forewarn.core.words import ProjectName
from forewarn.wire import icalendar

router = ApiRouter("events")


@declared
class CalendarQuery(Query):
    """Whose events."""

    project: ProjectName | None = maybe(PROJECT, "Only of this project; left out: all you may see.")


class CalendarResponse(Response):
    """An iCalendar file."""

    media_type = "text/calendar"


@router.call("GET /v1/calendar.ics", "Subscribe to coming events", right=Right.SEE, errors=(404,))
def show_calendar(query: CalendarQuery, reads: CallerReading, caller: KnownCaller) -> CalendarResponse:
    """Write the current events of a project, or all that the caller may see, as an iCalendar feed."""
    coming = reads.narrowed(query.project).views.coming()
    whose = query.project or caller.project
    name = "forewarn" if whose is None else f"forewarn: {whose}"
    return CalendarResponse(icalendar.calendar(name, ((each.event, each.deferrals) for each in coming)))
