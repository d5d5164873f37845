"""How a stage goes on: its shares are announced, armed, started, carried out and withdrawn.

A share starts together: it is a whole stage, or, where machines leave a host or come back to it, one event
with its machines. Such shares do not wait for each other, but each for a free slot.
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
from forewarn.core.time_formats import format_time
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
from forewarn.core.orders.events import arm_at
from forewarn.core.orders.moves import Slots
from forewarn.core.policy import Policy
from forewarn.core.redaction import machine_names

# Machines, as a stage of their own, and their events.
Share: TypeAlias = tuple[Stage, tuple[Event, ...]]


def go_on(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Carry a stage as far as it can go now."""
    if stages.is_apart(order.stages[index]):
        return _go_on_apart(draft, order, index, policy)
    match order.stages[index].state:
        case StageState.QUEUED:
            order, waiting = stage_announcing.announce(draft, order, index, policy)
            # What fails starts with its announcement.
            listed = departures.stage_events(draft, order, index)
            if order.action is Action.FAIL and listed:
                order = _begin_share(draft, order, index, listed)
            return replace(order, waiting=waiting)
        case StageState.ANNOUNCED:
            return _announced(draft, order, index, policy)
        case _:
            return _started(draft, order, index, policy)


def _go_on_apart(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    if not order.stages[index].steps:
        return stages.put_state(order, index, StageState.DONE)
    order = moves.retry_failed(draft, order, index, policy)
    order = _withdraw_stale(draft, order, index, policy)
    order, unannounced = stage_announcing.announce(draft, order, index, policy)
    order, unstarted = _start(draft, order, index, policy)
    order = _begin(draft, order, index)
    if stages.settled(order.stages[index].steps):
        return replace(stages.put_state(order, index, StageState.DONE), waiting=())
    under_way = _under_way(draft, order, index)
    lowered = moves.waiting_for_notice(draft, order, index, departures.stage_events(draft, order, index))
    left = tuple(step for step in under_way.steps if step.state is StepState.WAITING)
    working = (*reasons.not_to_finish(draft, order, under_way), *lowered)
    working += stage_announcing.not_to_send(draft, order, index, left) if left else ()
    return replace(order, waiting=tuple(dict.fromkeys((*working, *unstarted, *unannounced))))


def shares(draft: Draft, order: Order, index: int) -> list[Share]:
    """Return what of a stage is announced and not started."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if not stages.is_apart(order.stages[index]):
        return [(stage, listed)] if stage.state is StageState.ANNOUNCED else []
    scheduled = (event for event in listed if event.status is EventStatus.SCHEDULED)
    turns = sorted(scheduled, key=lambda event: (event.not_before, event.number))
    return [(replace(stage, steps=events.told_by(event, stage.steps)), (event,)) for event in turns]


def withdraw(draft: Draft, order: Order, index: int, *, why: str) -> Order:
    """Withdraw what a stage has announced and not started."""
    for _, announced in shares(draft, order, index):
        order = _withdrawn(draft, order, index, announced, why=why)
    return order


def moments(draft: Draft, order: Order, index: int, policy: Policy) -> list[datetime]:
    """Return when a stage is to be looked at again."""
    stage, bound = order.stages[index], stage_announcing.bound(order, index)
    found = [step.look_at for step in stage.steps if step.look_at is not None]
    found += moves.retry_times(stage, draft.now)
    for share, announced in shares(draft, order, index):
        later = [events.may_start_at(draft, event) for event in announced]
        later += [arm_at(event, policy) for event in announced if not event.armed]
        opens = reasons.timing(draft, bound, share.steps, policy).start_at(draft.now)
        later += [] if opens is None else [opens]
        # One that is approved and has no slot yet moves on when its time has come.
        later += [event.not_before for event in announced if stages.is_apart(order.stages[index])]
        found += [moment for moment in later if moment > draft.now]
        found += [_stale_at(announced, policy)] if announced else []
    for told in stage_announcing.to_be_told(draft, order, index):
        at = reasons.announce_at(draft, bound, told, policy)
        found += [at] if at is not None and at > draft.now else []
    return found


def _withdraw_stale(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Withdraw what could not start for too long (rule 11); it is announced again."""
    for share, announced in shares(draft, order, index):
        if announced and draft.now >= _stale_at(announced, policy):
            order = _announced_again(draft, order, index, (share, announced), why=events.stale(announced))
    return order


def _announced_again(draft: Draft, order: Order, index: int, share: Share, *, why: str) -> Order:
    stage, announced = share
    if stages.is_apart(stage):
        again = {step.machine: replace(step, withdrawals=step.withdrawals + 1) for step in stage.steps}
        order = stages.put_steps(order, index, again)
    else:
        order = replace(order, withdrawals=order.withdrawals + 1)
    return _withdrawn(draft, order, index, announced, why=why)


def _withdrawn(draft: Draft, order: Order, index: int, announced: tuple[Event, ...], *, why: str) -> Order:
    for event in announced:
        events.end(draft, event, Kind.EVENT_WITHDRAWN, why=why)
    apart = stages.is_apart(order.stages[index])
    state = stage_announcing.state_of(draft, order, index) if apart else StageState.QUEUED
    return stages.put_state(order, index, state)


def _stale_at(announced: tuple[Event, ...], policy: Policy) -> datetime:
    return min(event.not_before for event in announced) + policy.stale_after


# Announced: waiting for approvals, for NotBefore, for machines to be free


def _announced(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = stage_announcing.take_latecomers(draft, order, index, policy)
    order = _withdraw_stale(draft, order, index, policy)
    if order.stages[index].state is StageState.QUEUED:
        return order
    order, waiting = _start(draft, order, index, policy)
    if not waiting:
        return replace(order, waiting=())
    ((stage, announced),) = shares(draft, order, index)
    armed = stage_announcing.is_armed(announced)
    late = stage_announcing.latecomers(draft, order, index)
    others = [
        why for step in late for why in reasons.not_to_announce(draft, order, (step,), policy, armed=armed)
    ]
    asked = (step for step in late if step.precheck is not None)
    others += move_prechecks.waiting(draft, order, asked, policy)
    only_untold = set(waiting) <= set(reasons.untold(draft, order, stage))
    if armed and only_untold and (why := stage_announcing.given_way(order, late, others)):
        return _announced_again(draft, order, index, (stage, announced), why=why)
    return replace(order, waiting=tuple(dict.fromkeys((*waiting, *others))))


def _start(draft: Draft, order: Order, index: int, policy: Policy) -> tuple[Order, list[Waiting]]:
    """Start every share that may; return why others do not."""
    waiting: list[Waiting] = []
    for share, announced in shares(draft, order, index):
        unarmed = arming.arm(draft, stage_announcing.bound(order, index), announced, policy)
        announced = tuple(draft.events[event.id] for event in announced)
        why = (*unarmed, *_not_to_start(draft, order, index, (share, announced), policy))
        if not why and stages.is_apart(share):
            why = _without_slot(draft, order, index, announced)
        waiting += why
        if not why:
            order = _begin_share(draft, order, index, announced)
    return order, waiting


def _not_to_start(
    draft: Draft, order: Order, index: int, share: Share, policy: Policy
) -> tuple[Waiting, ...]:
    stage, announced = share
    away = stage_announcing.not_to_send(draft, order, index, stage.steps)
    alone = stages.is_apart(stage)
    kept = reasons.not_to_start(draft, order, stage, announced, policy, alone=alone)
    return (*host_work.not_cordoned(order), *((*away, *kept) if alone else (*kept, *away)))


def _begin_share(draft: Draft, order: Order, index: int, announced: tuple[Event, ...]) -> Order:
    for event in announced:
        failed = order.action is Action.FAIL
        events.start(draft, event, why=f"host {order.host} failed" if failed else events.cause(event))
    return stages.put_state(stages.counted_again(order), index, StageState.STARTED, now=draft.now)


def _without_slot(
    draft: Draft, order: Order, index: int, announced: tuple[Event, ...]
) -> tuple[Waiting, ...]:
    """Give an event whose time has come, and that has no slot yet, a later one; return what it waits for."""
    (event,), listed = announced, departures.stage_events(draft, order, index)
    slots = Slots(draft, order, index, listed)
    if slots.is_free:
        return ()
    running = (step.name for step in order.stages[index].steps if step.state is StepState.RUNNING)
    others = machine_names(running)
    reason = f"waits for its turn, after {others}" if others else "waits for its turn"
    if draft.now >= event.not_before:
        event = events.postpone(draft, event, until=slots.turn(but=event), reason=reason)
    said = f"{reason}; expected at {format_time(event.not_before)}"
    return (Waiting(what=event.id, reason=said, until=event.not_before),)


# Started: steps are carried out, events linger, stages end


def _started(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = _begin(draft, fencing.go_on(draft, order, policy), index)
    stage = order.stages[index]
    worked_on = stage.kind is not StageKind.HOST or host_work.is_settled(order)
    over = stages.settled(stage.steps) and worked_on
    if over and not departures.stage_events(draft, order, index):
        return stages.put_stage(order, index, replace(stage, state=StageState.DONE))
    listed = departures.waiting_to_finish(draft, order, policy) if over else ()
    away = placement.out_of_reach(draft, order, stage.steps)
    return replace(order, waiting=(*reasons.not_to_finish(draft, order, stage), *away, *listed))


def _begin(draft: Draft, order: Order, index: int) -> Order:
    """Begin the steps of what has started, as long as there are slots."""
    fenced = fencing.is_fenced(order) and not host_failures.is_superseded(draft, order)
    if order.action is Action.FAIL and not fenced:
        return order
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    idle = Slots(draft, order, index, listed).idle if stages.is_apart(order.stages[index]) else None
    begun: dict[MachineId, Step] = {}
    for step in _under_way(draft, order, index).steps:
        if idle is not None and len(begun) >= idle:
            break
        # A step that is tried again may find its machine in other hands.
        if step.state is not StepState.WAITING or lost_hosts.strands(draft, order, step):
            continue
        if stage.kind is StageKind.RETURN:
            away = stage_announcing.not_to_return(draft, order)
        else:
            away = placement.out_of_reach(draft, order, (step,))
        if away and step.work is Work.RECOVER:
            steps.take_down(draft, step)  # whether or not there is a host for it
        if not away and not steps.running_elsewhere(draft, step.machine, order):
            begun[step.machine] = _begun(draft, order, stage, step)
            departures.wake_others(draft, order, step.machine)
    return stages.put_steps(order, index, begun)


def _begun(draft: Draft, order: Order, stage: Stage, step: Step) -> Step:
    """Begin a step; whoever is to leave a host that is fenced has left it."""
    host = draft.machines[step.machine].host
    begun = steps.begin(draft, order, step, to=order.host if stage.kind is StageKind.RETURN else None)
    if stage.kind is StageKind.HOST:  # it restarts with its host, and is verified then
        begun = replace(begun, look_at=None)
    gone = ACTIONS[order.action].leaves and fencing.is_gone(draft, host)
    return superseding.end_departure(draft, order, begun) if gone else begun


def _under_way(draft: Draft, order: Order, index: int) -> Stage:
    """Return a stage with only the machines of what has started, in that order."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if not stages.is_apart(order.stages[index]):
        return stage
    started = [event for event in listed if event.status is EventStatus.STARTED]
    started.sort(key=lambda event: (event.started_at or event.not_before, event.number))
    return replace(
        stage, steps=tuple(step for event in started for step in events.told_by(event, stage.steps))
    )
