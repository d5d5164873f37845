"""The calendar feed: what is coming, where people look anyway."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from forewarn.api.bodies import CalendarQuery
from forewarn.api.errors import documented_as_json
from forewarn.api.paths import project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import KnownCaller, Service
from forewarn.wire import calendar

router = APIRouter(route_class=GuardedRoute, tags=["events"])


class Calendar(Response):
    """An iCalendar file."""

    media_type = "text/calendar"


@router.get(
    "/v1/calendar.ics",
    summary="Subscribe to coming events",
    status_code=200,
    response_class=Calendar,
    responses=documented_as_json(404),
)
async def show_calendar(
    query: Annotated[CalendarQuery, Query()], service: Service, caller: KnownCaller
) -> Calendar:
    """Write the current events of a project, or all that the caller may see, as an iCalendar feed."""
    project = project_name(query.project)
    coming = await service.run(lambda: service.views.only(project).coming())
    whose = project or caller.project
    name = "forewarn" if whose is None else f"forewarn: {whose}"
    return Calendar(calendar.calendar(name, ((each.event, each.put_off) for each in coming)))
