"""Events: what is announced to guests; approve and cancel as a person."""

from forewarn.api.declared import declared, given, maybe
from forewarn.api.queries import EventInPath, ListQuery
from forewarn.api.request_fields import FLAG_IN_QUERY, ID_BEGINNING
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.core.access import Right
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer, ListedEventAnswer, NotedEventAnswer

router = ApiRouter("events")


@declared
class EventsQuery(ListQuery):
    """Which events."""

    all: bool = given(FLAG_IN_QUERY, "Past ones too, newest first.", default=False)
    begins: str | None = maybe(ID_BEGINNING, "Only those whose id begins so.")


@router.call("GET /v1/events", "List events", right=Right.SEE, errors=(404,))
async def list_events(query: EventsQuery, service: Service) -> Page[ListedEventAnswer]:
    """List what is announced to guests, oldest first; or all that ever was, newest first."""
    found, after = await service.run(
        lambda: service.narrowed(query.project).views.events(
            after=query.after, limit=query.limit, past=query.all, begins=query.begins or ""
        )
    )
    items = [
        ListedEventAnswer.of(each.event, project=each.project, simulated=each.simulated) for each in found
    ]
    return Page(kind=ListedEventAnswer, items=items, next=after)


@router.call("GET /v1/events/{id}", "Show an event", right=Right.SEE, errors=(404,))
async def show_event(id: EventInPath, service: Service) -> NotedEventAnswer:
    """Show an event, current or over, when it was sent to its machines, and how long they were disturbed."""
    view = await service.run(lambda: service.views.event(id))
    return NotedEventAnswer.noted(
        view.event, view.notices, impact=view.impact, project=view.project, simulated=view.simulated
    )


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
