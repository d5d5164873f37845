"""Events: what is announced to guests; approve and cancel as a person."""

from forewarn.api.queries import EventInPath, ListQuery
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.core.access import Right
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer, NotedEventAnswer

router = ApiRouter("events")


@router.call("GET /v1/events", "List current events", right=Right.SEE, errors=(404,))
async def list_events(query: ListQuery, service: Service) -> Page[EventAnswer]:
    """List what is announced to guests, oldest first."""
    found, after = await service.run(
        lambda: service.narrowed(query.project).views.events(after=query.after, limit=query.limit)
    )
    return Page(kind=EventAnswer, items=[EventAnswer.of(event) for event in found], next=after)


@router.call("GET /v1/events/{id}", "Show an event", right=Right.SEE, errors=(404,))
async def show_event(id: EventInPath, service: Service) -> NotedEventAnswer:
    """Show an event, current or over, when it was sent to its machines, and how long they were disturbed."""
    view = await service.run(lambda: service.views.event(id))
    return NotedEventAnswer.noted(view.event, view.notices, impact=view.impact)


@router.call("POST /v1/events/{id}/approve", "Let an event start now", right=Right.USE, errors=(404, 409))
def approve_event(id: EventInPath, service: Service, caller: CallerName) -> EventAnswer:
    """Approve an event as a person; approving twice, or one that has started, changes nothing."""
    return EventAnswer.of(service.orders.approve_event(id, by=caller))


@router.call(
    "POST /v1/events/{id}/cancel", "Cancel the order of an event", right=Right.USE, errors=(404, 409)
)
def cancel_event(id: EventInPath, service: Service, caller: CallerName) -> EventAnswer:
    """Cancel the order of an event, with all its events; too late once it has started."""
    return EventAnswer.of(service.orders.cancel_event(id, by=caller))
