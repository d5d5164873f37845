"""Events: what is announced to guests; approve and cancel as a person."""

from datetime import datetime

from forewarn.api.inputs import EventInPath, ListQuery
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, ID_BEGINNING, MACHINE, TIME
from forewarn.api.request_parts import declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, ScopedTx, Service
from forewarn.core.access import Right
from forewarn.core.basic_types import HostName, MachineName
from forewarn.core.filters import EventFilter
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.event_answers import EventAnswer, ListedEventAnswer, EventDetailAnswer, NoticeAnswer

router = ApiRouter("events")


@declared
class EventsQuery(ListQuery):
    """Which events."""

    all: bool = given(FLAG_IN_QUERY, "Past ones too, newest first.", default=False)
    begins: str | None = maybe(ID_BEGINNING, "Only those whose id begins so.")
    machine: MachineName | None = maybe(MACHINE, "Only those that named this machine.")
    host: HostName | None = maybe(
        HOST, "Only those of orders on this host, and of open ones on machines that it carries."
    )
    since: datetime | None = maybe(TIME, "Only those that were not over by this time (RFC 3339).")
    until: datetime | None = maybe(TIME, "Only those that were announced before this time.")
    notices: bool = given(
        FLAG_IN_QUERY, "With what notice the machines of each got that has started.", default=False
    )


@router.call("GET /v1/events", "List events", right=Right.SEE, errors=(404,))
def list_events(query: EventsQuery, reads: CallerReading) -> Page[ListedEventAnswer]:
    """List what is announced to guests, oldest first; or all that ever was, newest first.

    With `since` and `until`, what was to be seen at some time between them.
    """
    found, after = reads.narrowed(query.project).views.events(
        EventFilter(
            past=query.all,
            begins=query.begins or "",
            machine=query.machine,
            host=query.host,
            since=query.since,
            until=query.until,
        ),
        after=query.after,
        limit=query.limit,
        with_notice=query.notices,
    )
    items = [
        ListedEventAnswer.of(
            each.event,
            project=each.project,
            simulated=each.simulated,
            notice=NoticeAnswer.like(each.notice) if each.notice else None,
        )
        for each in found
    ]
    return Page(kind=ListedEventAnswer, items=items, next=after)


@router.call("GET /v1/events/{id}", "Show an event", right=Right.SEE, errors=(404,))
def show_event(id: EventInPath, reads: CallerReading) -> EventDetailAnswer:
    """Show an event, current or over, when it was sent to its machines, and how long they were disturbed."""
    view = reads.views.event(id)
    return EventDetailAnswer.noted(
        view.event,
        view.notices,
        impact=view.impact,
        project=view.project,
        simulated=view.simulated,
        notice=view.notice,
    )


@router.call("POST /v1/events/{id}/approve", "Let an event start now", right=Right.USE, errors=(404, 409))
def approve_event(id: EventInPath, service: Service, tx: ScopedTx, caller: CallerName) -> EventAnswer:
    """Approve an event as a person; approving twice, or one that has started, changes nothing."""
    return EventAnswer.of(service.orders.approve_event(tx, id, by=caller))


@router.call(
    "POST /v1/events/{id}/cancel", "Cancel the order of an event", right=Right.USE, errors=(404, 409)
)
def cancel_event(id: EventInPath, service: Service, tx: ScopedTx, caller: CallerName) -> EventAnswer:
    """Cancel the order of an event, with all its events; too late once it has started."""
    return EventAnswer.of(service.orders.cancel_event(tx, id, by=caller))
