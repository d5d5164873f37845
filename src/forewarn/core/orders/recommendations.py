"""Orders that only recommend something to guests: an event for a time, and no step.

Nothing waits for it and it waits for nobody but a hold: no rule counts it, and approving it changes nothing.
"""

from dataclasses import replace

from forewarn.core.basic_types import Action, Kind, OrderState
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.time_formats import format_time
from forewarn.core.orders import departures, events, reasons, stages
from forewarn.core.policy import Policy, notice_of, work_of


def recommends(action: Action) -> bool:
    """Return whether an action does nothing but tell guests."""
    work = ACTIONS[action].work
    return work is not None and WORKS[work].hint


def advance(draft: Draft, order: Order, *, policy: Policy) -> Order:
    """Announce a recommendation, or end it when its time is over."""
    listed = draft.events_of(order.id)
    if not listed:
        return _announce(draft, order, policy)
    (event,) = listed
    if draft.now < event.not_before:
        return _shown(draft, order, event)
    events.end(draft, event, Kind.EVENT_FINISHED, why="its time is over")
    draft.record(Kind.ORDER_DONE, order, by=order.by)
    return draft.put_order(departures.ended(draft, order, OrderState.DONE))


def _announce(draft: Draft, order: Order, policy: Policy) -> Order:
    (machine,) = stages.concerned(draft, order)
    step = stages.step_of(machine, work_of(order))
    if waiting := reasons.not_to_announce(draft, order, (step,), policy):
        return draft.put_order(replace(order, waiting=waiting, due_at=None))
    notice = notice_of(order, step.work, [draft.groups[machine.group]], policy)
    (event,) = events.announce(draft, order, 0, (step,), notice, armed=False)
    return _shown(draft, replace(order, announced_at=draft.now), event)


def _shown(draft: Draft, order: Order, event: Event) -> Order:
    said = f"a recommendation, nothing is done; it leaves at {format_time(event.not_before)}"
    waiting = (Waiting(what=event.id, reason=said, until=event.not_before),)
    return draft.put_order(
        replace(order, state=OrderState.ANNOUNCED, waiting=waiting, due_at=event.not_before)
    )
