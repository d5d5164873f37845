"""The calendar feed: what is coming, where people look anyway."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from forewarn.api.queries import CalendarQuery
from forewarn.api.routing import ApiRouter
from forewarn.api.services import KnownCaller, Service
from forewarn.core.access import Right
from forewarn.wire import icalendar

router = ApiRouter("events")


class CalendarResponse(Response):
    """An iCalendar file."""

    media_type = "text/calendar"


@router.call(
    "GET /v1/calendar.ics",
    "Subscribe to coming events",
    right=Right.SEE,
    errors=(404,),
    response_class=CalendarResponse,
)
async def show_calendar(
    query: Annotated[CalendarQuery, Query()], service: Service, caller: KnownCaller
) -> CalendarResponse:
    """Write the current events of a project, or all that the caller may see, as an iCalendar feed."""
    coming = await service.run(lambda: service.narrowed(query.project).views.coming())
    whose = query.project or caller.project
    name = "forewarn" if whose is None else f"forewarn: {whose}"
    return CalendarResponse(icalendar.calendar(name, ((each.event, each.deferrals) for each in coming)))
