"""How started events leave the document: once their machines are done, and pollers have seen them."""

from datetime import datetime

from forewarn.core.draft import Draft
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.orders import departures, events, stages
from forewarn.core.policy import Policy
from forewarn.core.words import EventStatus, Kind


def events_of(draft: Draft, order: Order, index: int) -> tuple[Event, ...]:
    """Return the listed events of a stage."""
    return tuple(event for event in draft.events_of(order.id) if event.stage == index)


def finish(draft: Draft, order: Order, index: int, policy: Policy) -> None:
    """End the events of a stage that are over and have been listed for long enough."""
    for event in events_of(draft, order, index):
        if is_over(order, event) and draft.now >= linger_until(event, policy):
            _finish(draft, order, event)


def moments(draft: Draft, order: Order, index: int, policy: Policy) -> list[datetime]:
    """Return when events of a stage will have been listed for long enough."""
    over = (event for event in events_of(draft, order, index) if is_over(order, event))
    return [linger_until(event, policy) for event in over]


def is_over(order: Order, event: Event) -> bool:
    """Return whether all that a started event announced is done."""
    if event.status is not EventStatus.STARTED:
        return False
    return stages.settled(events.told_by(event, order.stages[event.stage].steps))


def linger_until(event: Event, policy: Policy) -> datetime:
    """Return until when a started event is listed at least."""
    return (event.started_at or event.not_before) + policy.linger


def _finish(draft: Draft, order: Order, event: Event) -> None:
    events.end(draft, event, Kind.EVENT_FINISHED, why="done")
    departures.leave_if_terminated(draft, order)
