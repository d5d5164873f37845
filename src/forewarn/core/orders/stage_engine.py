"""Advance a stage: announce, arm and start its shares, begin their steps, and withdraw stale events.

A share is what starts together: usually a whole stage. If machines leave a host or return to it, each event
with its machines is a share. Such shares do not wait for each other, but each waits for a free slot.
"""

from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    Kind,
    MachineId,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.orders import (
    arming,
    departures,
    events,
    fencing,
    host_failures,
    host_work,
    lost_hosts,
    move_prechecks,
    moves,
    placement,
    reasons,
    stage_announcing,
    stages,
    steps,
    superseding,
)
from forewarn.core.policy import Policy
from forewarn.core.redaction import machine_names
from forewarn.core.time_formats import format_time

# A stage reduced to the steps that start together, and their events.
Share: TypeAlias = tuple[Stage, tuple[Event, ...]]


def advance(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Advance a stage as far as possible now."""
    if stages.starts_per_event(order.stages[index]):
        return _advance_per_event(draft, order, index, policy)
    match order.stages[index].state:
        case StageState.QUEUED:
            order, waiting = stage_announcing.announce(draft, order, index, policy)
            listed = departures.stage_events(draft, order, index)
            if order.action is Action.FAIL and listed:  # a failure starts with its announcement
                order = _start_share(draft, order, index, listed)
            return replace(order, waiting=waiting)
        case StageState.ANNOUNCED:
            return _advance_announced(draft, order, index, policy)
        case _:
            return _advance_started(draft, order, index, policy)


def _advance_per_event(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    if not order.stages[index].steps:
        return stages.put_state(order, index, StageState.DONE)
    order = moves.retry_failed(draft, order, index, policy)
    order = _withdraw_stale(draft, order, index, policy)
    order, unannounced = stage_announcing.announce(draft, order, index, policy)
    order, unstarted = _start_ready_shares(draft, order, index, policy)
    order = _begin_steps(draft, order, index)
    if steps.all_finished(order.stages[index].steps):
        return replace(stages.put_state(order, index, StageState.DONE), waiting=())
    started = _started_part(draft, order, index)
    left = tuple(step for step in started.steps if step.state is StepState.WAITING)
    working = (
        *reasons.why_not_finished(draft, order, started.steps),
        *moves.why_not_announced_again(draft, order, index),
        *(stage_announcing.why_not_sent(draft, order, index, left) if left else ()),
    )
    return replace(order, waiting=tuple(dict.fromkeys((*working, *unstarted, *unannounced))))


def _scheduled_shares(draft: Draft, order: Order, index: int) -> list[Share]:
    """Return the shares of a stage that are announced and not started."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if not stages.starts_per_event(stage):
        return [(stage, listed)] if stage.state is StageState.ANNOUNCED else []
    scheduled = (event for event in listed if event.status is EventStatus.SCHEDULED)
    turns = sorted(scheduled, key=lambda event: (event.not_before, event.number))
    return [(replace(stage, steps=events.announced_steps(event, stage.steps)), (event,)) for event in turns]


def withdraw(draft: Draft, order: Order, index: int, *, why: str) -> Order:
    """Withdraw the events of a stage that have not started."""
    for _, announced in _scheduled_shares(draft, order, index):
        order = _withdraw_events(draft, order, index, announced, why=why)
    return order


def due_times(draft: Draft, order: Order, index: int, policy: Policy) -> list[datetime]:
    """Return the future times at which a stage may be able to go on."""
    stage, effective = order.stages[index], stage_announcing.effective_order(order, index)
    times = [step.look_at for step in stage.steps if step.look_at is not None]
    times += moves.retry_times(stage, draft.now)
    for share, announced in _scheduled_shares(draft, order, index):
        later = [events.may_start_at(draft, event) for event in announced]
        later += [events.arm_at(event, policy) for event in announced if not event.armed]
        opens = reasons.timing(draft, effective, share.steps, policy).start_at(draft.now)
        later += [] if opens is None else [opens]
        # An approved event without a slot is postponed at its NotBefore.
        later += [event.not_before for event in announced if stages.starts_per_event(stage)]
        times += [time for time in later if time > draft.now]
        times += [_stale_at(announced, policy)] if announced else []
    for share_steps in stage_announcing.unannounced_shares(draft, order, index):
        at = reasons.announce_at(draft, effective, share_steps, policy)
        times += [at] if at is not None and at > draft.now else []
    return times


def _withdraw_stale(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Withdraw events that could not start for too long (rule 11). They are announced again."""
    for share, announced in _scheduled_shares(draft, order, index):
        if announced and draft.now >= _stale_at(announced, policy):
            first = min(event.not_before for event in announced)
            why = f"could not start within the limit after {first:%H:%M:%S}; announced again"
            order = _withdraw_to_reannounce(draft, order, index, (share, announced), why=why)
    return order


def _withdraw_to_reannounce(draft: Draft, order: Order, index: int, share: Share, *, why: str) -> Order:
    stage, announced = share
    if stages.starts_per_event(stage):
        again = {step.machine: replace(step, withdrawals=step.withdrawals + 1) for step in stage.steps}
        order = stages.put_steps(order, index, again)
    else:
        order = replace(order, withdrawals=order.withdrawals + 1)
    return _withdraw_events(draft, order, index, announced, why=why)


def _withdraw_events(
    draft: Draft, order: Order, index: int, announced: tuple[Event, ...], *, why: str
) -> Order:
    for event in announced:
        events.end(draft, event, Kind.EVENT_WITHDRAWN, why=why)
    per_event = stages.starts_per_event(order.stages[index])
    state = stage_announcing.state_of(draft, order, index) if per_event else StageState.QUEUED
    return stages.put_state(order, index, state)


def _stale_at(announced: tuple[Event, ...], policy: Policy) -> datetime:
    return min(event.not_before for event in announced) + policy.stale_after


# Announced stages: they wait for approvals, for NotBefore, and for other orders on their machines


def _advance_announced(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = stage_announcing.announce_latecomers(draft, order, index, policy)
    order = _withdraw_stale(draft, order, index, policy)
    if order.stages[index].state is StageState.QUEUED:
        return order
    order, waiting = _start_ready_shares(draft, order, index, policy)
    if not waiting:
        return replace(order, waiting=())
    ((stage, announced),) = _scheduled_shares(draft, order, index)
    armed = stage_announcing.is_armed(announced)
    late = stage_announcing.latecomers(draft, order, index)
    others = [
        why for step in late for why in reasons.why_not_announced(draft, order, (step,), policy, armed=armed)
    ]
    asked = (step for step in late if step.precheck is not None)
    others += move_prechecks.waiting(draft, order, asked, policy)
    only_latecomers = set(waiting) <= set(reasons.unannounced_machines(draft, order, stage))
    if armed and only_latecomers and (why := stage_announcing.latecomer_deadlock(order, late, others)):
        return _withdraw_to_reannounce(draft, order, index, (stage, announced), why=why)
    return replace(order, waiting=tuple(dict.fromkeys((*waiting, *others))))


def _start_ready_shares(
    draft: Draft, order: Order, index: int, policy: Policy
) -> tuple[Order, list[Waiting]]:
    """Start every share that may start; return why the others may not."""
    waiting: list[Waiting] = []
    for share, announced in _scheduled_shares(draft, order, index):
        effective = stage_announcing.effective_order(order, index)
        unarmed = arming.arm(draft, effective, announced, policy)
        announced = tuple(draft.events[event.id] for event in announced)
        alone = stages.starts_per_event(share)
        away = stage_announcing.why_not_sent(draft, order, index, share.steps)
        kept = reasons.why_not_started(draft, order, share, announced, policy, alone=alone)
        why = (*unarmed, *host_work.why_not_cordoned(order), *((*away, *kept) if alone else (*kept, *away)))
        if not why and alone:
            why = _wait_for_slot(draft, order, index, announced[0])
        waiting += why
        if not why:
            order = _start_share(draft, order, index, announced)
    return order, waiting


def _start_share(draft: Draft, order: Order, index: int, announced: tuple[Event, ...]) -> Order:
    for event in announced:
        if order.action is Action.FAIL:
            why = f"host {order.host} failed"
        else:
            why = f"approved by {event.approvals[0].by}" if event.approved else "NotBefore has passed"
        events.start(draft, event, why=why)
    return stages.put_state(stages.reset_withdrawals(order), index, StageState.STARTED, now=draft.now)


def _wait_for_slot(draft: Draft, order: Order, index: int, event: Event) -> tuple[Waiting, ...]:
    """Return nothing if a slot is free; otherwise postpone an event that is due, and return its reason."""
    slots = moves.Slots(draft, order, index)
    if slots.is_free:
        return ()
    others = machine_names(step.name for step in order.stages[index].steps if step.state is StepState.RUNNING)
    reason = f"waits for its turn, after {others}" if others else "waits for its turn"
    if draft.now >= event.not_before:
        event = events.postpone(draft, event, until=slots.turn(but=event), reason=reason)
    said = f"{reason}; expected at {format_time(event.not_before)}"
    return (Waiting(what=event.id, reason=said, until=event.not_before),)


# Started stages: their steps are carried out, and their events stay listed for a while


def _advance_started(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = _begin_steps(draft, fencing.advance(draft, order, policy), index)
    stage = order.stages[index]
    worked_on = stage.kind is not StageKind.HOST or host_work.is_settled(order)
    over = steps.all_finished(stage.steps) and worked_on
    if over and not departures.stage_events(draft, order, index):
        return stages.put_stage(order, index, replace(stage, state=StageState.DONE))
    listed = departures.waiting_to_finish(draft, order, policy) if over else ()
    away = placement.waiting_for_reachable_host(draft, order, stage.steps)
    return replace(order, waiting=(*reasons.why_not_finished(draft, order, stage.steps), *away, *listed))


def _begin_steps(draft: Draft, order: Order, index: int) -> Order:
    """Begin the waiting steps of a started stage, as far as slots are free."""
    if order.action is Action.FAIL and (not order.is_fenced or host_failures.is_superseded(draft, order)):
        return order
    stage = order.stages[index]
    idle = moves.Slots(draft, order, index).idle if stages.starts_per_event(stage) else None
    begun: dict[MachineId, Step] = {}
    for step in _started_part(draft, order, index).steps:
        if idle is not None and len(begun) >= idle:
            break
        if step.state is not StepState.WAITING or lost_hosts.is_stranded(draft, order, step):
            continue
        if stage.kind is StageKind.RETURN:
            away = stage_announcing.why_not_returned(draft, order)
        else:
            away = placement.waiting_for_reachable_host(draft, order, (step,))
        if away and step.work is Work.RECOVER:
            steps.take_down(draft, step)  # even if no host can take it
        # On a retry, another order may already work on the machine.
        if not away and not steps.running_elsewhere(draft, step.machine, order):
            begun[step.machine] = _begin_step(draft, order, stage, step)
            departures.wake_others(draft, order, step.machine)
    return stages.put_steps(order, index, begun)


def _begin_step(draft: Draft, order: Order, stage: Stage, step: Step) -> Step:
    host = draft.machines[step.machine].host
    begun = steps.begin(draft, order, step, to=order.host if stage.kind is StageKind.RETURN else None)
    if stage.kind is StageKind.HOST:  # the machine restarts with its host, and is verified then
        begun = replace(begun, look_at=None)
    # An eviction or termination on a fenced host is done: nothing runs there.
    gone = ACTIONS[order.action].leaves and fencing.is_host_fenced(draft, host)
    return superseding.end_departure(draft, order, begun) if gone else begun


def _started_part(draft: Draft, order: Order, index: int) -> Stage:
    """Return a stage reduced to the steps of its started events, in the order of their start."""
    stage = order.stages[index]
    if not stages.starts_per_event(stage):
        return stage
    listed = departures.stage_events(draft, order, index)
    started = [event for event in listed if event.status is EventStatus.STARTED]
    started.sort(key=lambda event: (event.started_at or event.not_before, event.number))
    begun = (step for event in started for step in events.announced_steps(event, stage.steps))
    return replace(stage, steps=tuple(begun))
