"""How started events leave the document: once their machines are done, and pollers have seen them.

The work goes on meanwhile, unless rule 4 forbids it. The order stays open while one of its events is listed.
"""

from datetime import datetime

from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.moments import format_time
from forewarn.core.orders import departures, events, stages
from forewarn.core.policy import Policy
from forewarn.core.words import EventStatus, Kind


def events_of(draft: Draft, order: Order, index: int) -> tuple[Event, ...]:
    """Return the listed events of a stage."""
    return tuple(event for event in draft.events_of(order.id) if event.stage == index)


def finish(draft: Draft, order: Order, policy: Policy) -> None:
    """End the events of an order that are over and have been listed for long enough."""
    for event in draft.events_of(order.id):
        if is_over(order, event) and draft.now >= linger_until(event, policy):
            _finish(draft, order, event)


def moments(draft: Draft, order: Order, policy: Policy) -> list[datetime]:
    """Return when events of an order will have been listed for long enough."""
    over = (event for event in draft.events_of(order.id) if is_over(order, event))
    return [linger_until(event, policy) for event in over]


def waiting(draft: Draft, order: Order, policy: Policy) -> tuple[Waiting, ...]:
    """Return until when the events of an order stay listed that has nothing else to wait for."""
    return tuple(
        Waiting(
            what=event.id,
            reason=f"is done, and stays listed until {format_time(until)} so that slow pollers see it",
            until=until,
        )
        for event in draft.events_of(order.id)
        if (until := linger_until(event, policy)) > draft.now
    )


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
