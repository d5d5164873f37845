"""Advance an order: announce its stages, start them, carry them out, and end it.

`advance` is idempotent: it does all that can be done now, and nothing the second time. An order that cannot
go on carries its reasons in `waiting`.
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
    service,
    stage_engine,
    stages,
    winding_down,
)
from forewarn.core.policy import Policy


def advance(draft: Draft, order_id: OrderId, *, policy: Policy) -> Order:
    """Advance an order as far as possible now, and set when to look at it again."""
    order = draft.orders[order_id]
    if order.open and recommendations.recommends(order.action):
        return recommendations.advance(draft, order, policy=policy)
    if order.open and order.terms.abandoned_by:
        return abandonment.advance(draft, order)
    while order.open:
        before = order
        order = draft.put_order(_with_reasons(draft, _advance_stages(draft, order, policy)))
        if order == before:
            break
    if not order.open:
        return order
    state = _state(order)
    if state is OrderState.FAILED and order.state is not OrderState.FAILED:
        draft.record(Kind.ORDER_FAILED, order, by=order.by, reason=reasons.failures(order)[0].reason)
    return draft.put_order(replace(order, state=state, due_at=_due_at(draft, order, policy)))


def approve(draft: Draft, event: Event, approval: Approval, *, policy: Policy) -> None:
    """Record an approval of an event, and advance its order if the approval is new."""
    if events.approve(draft, event, approval) != event:
        advance(draft, event.order, policy=policy)


def defer(draft: Draft, event: Event, *, by: MachineName, wanted: timedelta, policy: Policy) -> None:
    """Defer an event, and the events that start with it, because a guest asks for more time."""
    if event.hint:
        raise Conflict(f"event {event.id} is a recommendation: it cannot be deferred")
    order = draft.orders[event.order]
    stage, announced = order.stages[event.stage], departures.stage_events(draft, order, event.stage)
    if stages.starts_per_event(stage):
        stage, announced = replace(stage, steps=events.announced_steps(event, stage.steps)), (event,)
    latest = reasons.timing(draft, order, stage.steps, policy).latest(event.not_before, now=draft.now)
    events.defer(draft, announced, event, by=by, wanted=wanted, latest=latest)
    advance(draft, event.order, policy=policy)


def pause(draft: Draft, order_id: OrderId, *, why: str) -> None:
    """Withdraw the events of an order that have not started, and announce nothing until it is resumed."""
    order = draft.orders[order_id]
    order = draft.put_order(replace(order, terms=replace(order.terms, paused=why)))
    for index in stages.active(order):
        order = stage_engine.withdraw(draft, order, index, why=why)
    draft.wake([draft.put_order(order)])


def resume(draft: Draft, order_id: OrderId) -> None:
    """Let a paused order go on."""
    order = draft.orders[order_id]
    resumed = replace(order, terms=replace(order.terms, paused=""), waiting=())
    draft.wake([draft.put_order(stages.reset_withdrawals(resumed))])


# After this many announcements without a start, a person should look at the order.
STUCK_ANNOUNCEMENTS = 3


def _with_reasons(draft: Draft, order: Order) -> Order:
    """Add the reasons that concern the whole order: it winds down, or its announcements never start."""
    if not order.open:
        return order
    waiting = order.waiting
    if order.terms.winding_down:
        reason = f"ends after all work that has started: {order.terms.winding_down}"
        waiting = tuple(dict.fromkeys((*waiting, Waiting(what=f"order {order.id}", reason=reason))))
    announcements = _announcements(draft, order)
    if announcements >= STUCK_ANNOUNCEMENTS:
        reason = f"announced {announcements} times without a start; see what it waits for, or cancel it"
        waiting = (Waiting(what=f"order {order.id}", reason=reason, stuck=True), *waiting)
    return order if waiting == order.waiting else replace(order, waiting=waiting)


def _announcements(draft: Draft, order: Order) -> int:
    """Return how often a stage, or one machine that moves, was announced since anything started."""
    alone = [step for step in order.steps if step.withdrawals]
    if not alone and not order.withdrawals:
        return 0  # as for nearly every order
    scheduled = (event for event in draft.events_of(order.id) if event.status is EventStatus.SCHEDULED)
    announced = {resource.machine for event in scheduled for resource in event.resources}
    together = order.withdrawals + bool(announced) if order.withdrawals else 0
    return max(together, *(step.withdrawals + (step.machine in announced) for step in alone), 0)


def _advance_stages(draft: Draft, order: Order, policy: Policy) -> Order:
    """Do the next thing that is possible now, or return an equal order if there is none."""
    order = order if order.terms.winding_down else service.replan(draft, order)
    if order.action is Action.SERVICE:
        order = lost_hosts.mark_if_overdue(draft, host_work.advance(draft, order, policy), policy)
    departures.finish_events(draft, order, policy)
    live = stages.active(order)
    queued = [index for index, stage in enumerate(order.stages) if stage.state is StageState.QUEUED]
    failure = order.action is Action.FAIL
    # A failure announces machines that it finds later at once, beside its active stages.
    if live and not (failure and queued):
        for index in live:
            order = stage_engine.advance(draft, order, index, policy)
        return order
    if not queued:
        return _end(draft, order, policy)
    # A failed host takes down all update domains together; other orders go stage by stage.
    for index in queued if failure else queued[:1]:
        order = stage_engine.advance(draft, order, index, policy)
        if order.waiting:
            break
    return order


def _end(draft: Draft, order: Order, policy: Policy) -> Order:
    """End an order with nothing left to announce, or set why it cannot end yet."""
    if host_failures.why_not_empty(draft, order):
        order = fencing.advance(draft, order, policy)
        occupied = host_failures.why_not_empty(draft, order)
        return replace(order, waiting=(*reasons.why_not_finished(draft, order, ()), *occupied))
    order = fencing.cancel_unneeded(draft, order)
    if not host_work.is_settled(order):
        order = host_work.check_health(draft, order)
        return replace(order, waiting=reasons.failures(order))
    if draft.events_of(order.id):
        return replace(order, waiting=departures.waiting_to_finish(draft, order, policy))
    if order.terms.winding_down:
        return winding_down.end(draft, order)
    draft.record(Kind.ORDER_DONE, order, by=order.by, reason="simulated" if order.simulated else "")
    host_work.uncordon(draft, order)
    return departures.ended(draft, order, OrderState.DONE)


def _due_at(draft: Draft, order: Order, policy: Policy) -> datetime | None:
    queued = [index for index, stage in enumerate(order.stages) if stage.state is StageState.QUEUED]
    live = stages.active(order) or queued[:1]
    times = [time for index in live for time in stage_engine.due_times(draft, order, index, policy)]
    times += [step.look_at for step in order.running_host_steps if step.look_at is not None]
    times += departures.finish_times(draft, order, policy)
    back_by = lost_hosts.due_at(draft, order)
    times += [] if back_by is None else [back_by]
    times += move_prechecks.recheck_times(order, draft.now)
    return min(times, default=None)


def _state(order: Order) -> OrderState:
    if any(step.state is StepState.FAILED for step in order.all_steps):
        return OrderState.FAILED
    states = {stage.state for stage in order.stages}
    if StageState.STARTED in states:
        return OrderState.STARTED
    if StageState.ANNOUNCED in states:
        return OrderState.ANNOUNCED
    begun = StageState.DONE in states or order.action is Action.FAIL  # a failure is never queued
    return OrderState.STARTED if begun else OrderState.QUEUED
