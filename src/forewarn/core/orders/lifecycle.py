"""How an order goes on: stages are announced, started, carried out; one function says what is next.

`advance` may be called at any time and as often as one likes: it does what can be done now, and nothing
the second time. All that waits carries its reason.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    Kind,
    MachineName,
    OrderId,
    OrderState,
    StageState,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.order import Order
from forewarn.core.orders import (
    abandonment,
    departures,
    events,
    fencing,
    host_failures,
    host_work,
    lost_hosts,
    move_prechecks,
    reasons,
    recommendations,
    stage_announcing,
    stage_engine,
    stages,
    winding_down,
)
from forewarn.core.policy import Policy


def advance(draft: Draft, order: OrderId, *, policy: Policy) -> Order:
    """Carry an order as far as it can go now, and say when to look at it again."""
    mine = draft.orders[order]
    if mine.open and recommendations.recommends(mine.action):
        return recommendations.advance(draft, mine, policy=policy)
    if mine.open and mine.terms.abandoned_by:
        return abandonment.go_on(draft, mine)
    while mine.open:
        before = mine
        mine = draft.put_order(_with_stuck(draft, _go_on(draft, mine, policy)))
        if mine == before:
            break
    if not mine.open:
        return mine
    state = _state(mine)
    if state is OrderState.FAILED and mine.state is not OrderState.FAILED:
        draft.record(Kind.ORDER_FAILED, mine, by=mine.by, reason=reasons.failures(mine)[0].reason)
    return draft.put_order(replace(mine, state=state, due_at=_due(draft, mine, policy)))


def approve(draft: Draft, event: Event, approval: Approval, *, policy: Policy) -> None:
    """Take an approval; what waited only for it starts."""
    if events.approve(draft, event, approval) != event:
        advance(draft, event.order, policy=policy)


def defer(draft: Draft, event: Event, *, by: MachineName, wanted: timedelta, policy: Policy) -> None:
    """Defer an event because one of its guests asks for more time, and its whole stage with it."""
    if event.hint:
        raise Conflict(f"event {event.id} is a recommendation: nothing comes that could be put off")
    order = draft.orders[event.order]
    stage, announced = order.stages[event.stage], departures.stage_events(draft, order, event.stage)
    if stages.is_apart(stage):  # each event goes by itself
        stage, announced = replace(stage, steps=events.told_by(event, stage.steps)), (event,)
    latest = reasons.timing(draft, order, stage.steps, policy).latest(event.not_before, now=draft.now)
    events.defer(draft, announced, event, by=by, wanted=wanted, latest=latest)
    advance(draft, event.order, policy=policy)


def pause(draft: Draft, order: OrderId, *, why: str) -> None:
    """Withdraw what an order has announced and not started; it announces nothing more until it is resumed."""
    mine = draft.orders[order]
    mine = draft.put_order(replace(mine, terms=replace(mine.terms, paused=why)))
    for index in stages.active(mine):
        mine = stage_engine.withdraw(draft, mine, index, why=why)
    draft.wake([draft.put_order(mine)])


def resume(draft: Draft, order: OrderId) -> None:
    """Let a paused order go on; it finds out again what it waits for."""
    mine = draft.orders[order]
    resumed = replace(mine, terms=replace(mine.terms, paused=""), waiting=())
    draft.wake([draft.put_order(stages.counted_again(resumed))])


# A person should look at an order whose announcements come to nothing so often.
STUCK_ANNOUNCEMENTS = 3


def _with_stuck(draft: Draft, order: Order) -> Order:
    """Add to what an order waits for that it is announced again and again and never starts."""
    announcements = _announcements(draft, order) if order.open else 0
    if announcements < STUCK_ANNOUNCEMENTS:
        return order
    reason = f"announced {announcements} times without a start; see what it waits for, or cancel it"
    stuck = Waiting(what=f"order {order.id}", reason=reason, stuck=True)
    return replace(order, waiting=(stuck, *order.waiting))


def _announcements(draft: Draft, order: Order) -> int:
    """Count how often a stage, or a machine that moves by itself, was announced since anything started."""
    alone = [step for step in order.steps if step.withdrawals]
    if not alone and not order.withdrawals:
        return 0  # as with nearly every order
    scheduled = (event for event in draft.events_of(order.id) if event.status is EventStatus.SCHEDULED)
    told = {resource.machine for event in scheduled for resource in event.resources}
    together = order.withdrawals + bool(told) if order.withdrawals else 0
    return max(together, *(step.withdrawals + (step.machine in told) for step in alone), 0)


def _go_on(draft: Draft, order: Order, policy: Policy) -> Order:
    """Do the next thing that can be done now; the same order comes back if there is none."""
    order = _go_on_by_stages(draft, order, policy)
    ends = winding_down.waiting(order) if order.open else ()
    return replace(order, waiting=tuple(dict.fromkeys((*order.waiting, *ends)))) if ends else order


def _go_on_by_stages(draft: Draft, order: Order, policy: Policy) -> Order:
    order = order if order.terms.winding_down else stage_announcing.replanned(draft, order)
    if order.action is Action.SERVICE:
        order = lost_hosts.look(draft, host_work.go_on(draft, order, policy), policy)
    departures.finish_events(draft, order, policy)
    live = stages.active(order)
    # Whoever is found on a failed host later waits for nobody there.
    late = order.action is Action.FAIL and any(stage.state is StageState.QUEUED for stage in order.stages)
    if not live or late:
        return _announce_next(draft, order, policy)
    for index in live:
        order = stage_engine.go_on(draft, order, index, policy)
    return order


def _announce_next(draft: Draft, order: Order, policy: Policy) -> Order:
    queued = [index for index, stage in enumerate(order.stages) if stage.state is StageState.QUEUED]
    if not queued:
        return _end(draft, order, policy)
    # A failed host takes all its update domains down together; everything else goes stage by stage.
    for index in queued if order.action is Action.FAIL else queued[:1]:
        order = stage_engine.go_on(draft, order, index, policy)
        if order.waiting:
            break
    return order


def _end(draft: Draft, order: Order, policy: Policy) -> Order:
    """End an order that has nothing left to announce, or say what it still waits for."""
    if host_failures.not_empty(draft, order):
        order = fencing.go_on(draft, order, policy)
        return replace(order, waiting=reasons.not_to_empty(draft, order))
    order = fencing.let_be(draft, order)
    if not host_work.is_settled(order):
        order = host_work.ask_after(draft, order)
        return replace(order, waiting=reasons.failures(order))
    if draft.events_of(order.id):
        return replace(order, waiting=departures.waiting_to_finish(draft, order, policy))
    if order.terms.winding_down:
        return winding_down.end(draft, order)
    draft.record(Kind.ORDER_DONE, order, by=order.by, reason="simulated" if order.simulated else "")
    host_work.release(draft, order)
    return departures.ended(draft, order, OrderState.DONE)


# When to look again


def _due(draft: Draft, order: Order, policy: Policy) -> datetime | None:
    queued = [index for index, stage in enumerate(order.stages) if stage.state is StageState.QUEUED]
    live = stages.active(order) or queued[:1]
    moments = [moment for index in live for moment in stage_engine.moments(draft, order, index, policy)]
    moments += [step.look_at for step in order.running_host_steps if step.look_at is not None]
    moments += departures.finish_times(draft, order, policy)
    back_by = lost_hosts.due_at(draft, order)
    moments += [] if back_by is None else [back_by]
    moments += move_prechecks.moments(order, draft.now)
    return min(moments, default=None)


def _state(order: Order) -> OrderState:
    if any(step.state is StepState.FAILED for step in order.all_steps):
        return OrderState.FAILED
    states = {stage.state for stage in order.stages}
    if StageState.STARTED in states:
        return OrderState.STARTED
    if StageState.ANNOUNCED in states:
        return OrderState.ANNOUNCED
    begun = StageState.DONE in states or order.action is Action.FAIL  # which nobody waits for
    return OrderState.STARTED if begun else OrderState.QUEUED
