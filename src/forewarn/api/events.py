"""Events: what guests are being told; approve and cancel as a person."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import ListQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Id, event_id, listed, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["events"])


@router.get(
    "/v1/events", summary="List current events", response_model=shapes.Events, responses=documented(404)
)
async def list_events(query: Annotated[ListQuery, Query()], service: Service) -> JSONResponse:
    """List what guests are being told, oldest first."""
    project = project_name(query.project)
    found, after = await service.run(
        lambda: service.views.only(project).events(after=query.after, limit=query.limit)
    )
    return listed("events", found, after, operator.event)


@router.get(
    "/v1/events/{id}", summary="Show an event", response_model=shapes.OneNotedEvent, responses=documented(404)
)
async def show_event(id: Id, service: Service) -> JSONResponse:
    """Show an event, current or over, when its machines were told, and how long they were disturbed."""
    wanted = event_id(id)
    view = await service.run(lambda: service.views.event(wanted))
    return JSONResponse({"event": operator.noted_event(view.event, view.notices, view.impact)})


@router.post(
    "/v1/events/{id}/approve",
    summary="Let an event start now",
    response_model=shapes.OneEvent,
    responses=documented(404, 409),
)
async def approve_event(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Approve an event as a person; approving twice, or one that has started, changes nothing."""
    wanted = event_id(id)
    event = await service.run(lambda: service.plane.approve_event(wanted, by=caller))
    return JSONResponse({"event": operator.event(event)})


@router.post(
    "/v1/events/{id}/cancel",
    summary="Call off the order of an event",
    response_model=shapes.OneEvent,
    responses=documented(404, 409),
)
async def cancel_event(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Call off the order of an event, with all its events; too late once it has started."""
    wanted = event_id(id)
    event = await service.run(lambda: service.plane.cancel_event(wanted, by=caller))
    return JSONResponse({"event": operator.event(event)})
