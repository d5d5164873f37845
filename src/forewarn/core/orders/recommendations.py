"""Recommendations to guests: an event for a limited time, without any step.

The rules ignore such an event, and its approval changes nothing. Only a hold delays it.
"""

from dataclasses import replace

from forewarn.core.basic_types import Action, Kind, OrderState
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import Order
from forewarn.core.orders import departures, events, reasons, stages
from forewarn.core.policy import Policy, notice_of, work_of
from forewarn.core.time_formats import format_time


def recommends(action: Action) -> bool:
    """Return whether an action only recommends something to guests."""
    work = ACTIONS[action].work
    return work is not None and WORKS[work].hint


def advance(draft: Draft, order: Order, *, policy: Policy) -> Order:
    """Announce a recommendation, or end it when its time is over."""
    listed = draft.events_of(order.id)
    if not listed:
        (machine,) = stages.affected_machines(draft, order)
        step = stages.step_of(machine, work_of(order))
        if waiting := reasons.why_not_announced(draft, order, (step,), policy):
            return draft.put_order(replace(order, waiting=waiting, due_at=None))
        notice = notice_of(order, step.work, [draft.groups[machine.group]], policy)
        listed = events.announce(draft, order, 0, (step,), notice, armed=False)
        order = replace(order, announced_at=draft.now)
    (event,) = listed
    if draft.now < event.not_before:
        said = f"only a recommendation; it ends at {format_time(event.not_before)}"
        waiting = (Waiting(what=event.id, reason=said, until=event.not_before),)
        return draft.put_order(
            replace(order, state=OrderState.ANNOUNCED, waiting=waiting, due_at=event.not_before)
        )
    events.end(draft, event, Kind.EVENT_FINISHED, why="its time is over")
    draft.record(Kind.ORDER_DONE, order, by=order.by)
    return draft.put_order(departures.ended(draft, order, OrderState.DONE))
