"""Endpoints of events: list and show them, and approve or cancel them as a person."""

from datetime import datetime

from forewarn.api.inputs import EventInPath, ListQuery
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, ID_BEGINNING, MACHINE, TIME
from forewarn.api.request_models import field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, ScopedTx, Service
from forewarn.core.access import Right
from forewarn.core.basic_types import HostName, MachineName
from forewarn.core.filters import EventFilter
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer, EventDetailAnswer, ListedEventAnswer

router = ApiRouter("events")


@request_model
class EventsQuery(ListQuery):
    """A filter of events."""

    all: bool = field(FLAG_IN_QUERY, "Include past events, and list the newest first.", default=False)
    begins: str | None = nullable(ID_BEGINNING, "Only events whose id begins with this text.")
    machine: MachineName | None = nullable(MACHINE, "Only events that name or named this machine.")
    host: HostName | None = nullable(
        HOST, "Only events of orders on this host, and current events of the machines on it."
    )
    since: datetime | None = nullable(TIME, "Only events that had not ended by this time (RFC 3339).")
    until: datetime | None = nullable(TIME, "Only events that were announced before this time (RFC 3339).")
    notices: bool = field(
        FLAG_IN_QUERY, "Include the notice that the machines of each started event got.", default=False
    )


@router.call("GET /v1/events", "List events", right=Right.SEE)
def list_events(query: EventsQuery, reads: CallerReading) -> Page[ListedEventAnswer]:
    """List the events that guests see now, oldest first. With `all`: also past events, newest first.

    `since` and `until` together select the events that guests could see between the two times.
    """
    found, after = reads.narrowed(query.project).views.events(
        query.build(EventFilter, past=query.all),
        after=query.after,
        limit=query.limit,
        with_notice=query.notices,
    )
    items = [ListedEventAnswer.of(each.event, each) for each in found]
    return Page(kind=ListedEventAnswer, items=items, next=after)


@router.call("GET /v1/events/{id}", "Show an event", right=Right.SEE)
def show_event(id: EventInPath, reads: CallerReading) -> EventDetailAnswer:
    """Return a current or past event, with the notice that each machine got and the measured impact."""
    view = reads.views.event(id)
    return EventDetailAnswer.of(view.event, view)


@router.call("POST /v1/events/{id}/approve", "Approve an event", right=Right.USE)
def approve_event(id: EventInPath, service: Service, tx: ScopedTx) -> EventAnswer:
    """Approve an event as a person, so that it can start before its `not_before`.

    The call has no effect if the event is already approved or started.
    """
    return EventAnswer.of(service.orders.approve_event(tx, id, by=service.by))


@router.call("POST /v1/events/{id}/cancel", "Cancel the order of an event", right=Right.USE)
def cancel_event(id: EventInPath, service: Service, tx: ScopedTx) -> EventAnswer:
    """Cancel the order of an event with all its events. After the start this is not possible: 409."""
    return EventAnswer.of(service.orders.cancel_event(tx, id, by=service.by))
