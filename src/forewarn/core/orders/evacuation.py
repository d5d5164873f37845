"""How machines leave a host, or come back to it: a few at a time, each event by itself.

Every share, the machines of one update domain of a group that go the same way, has an event of its own with
its own notice. It starts once it may and a slot is free; its machines move as slots become free.
"""

from collections.abc import Sequence
from datetime import datetime

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.moments import format_time
from forewarn.core.orders import (
    arming,
    departures,
    events,
    host_work,
    lost_hosts,
    move_prechecks,
    moves,
    placement,
    reasons,
    service,
    stages,
    steps,
)
from forewarn.core.orders.events import arm_at, armed_at_once
from forewarn.core.orders.moves import Slots
from forewarn.core.policy import Policy, notice_of
from forewarn.core.redaction import machine_names
from forewarn.core.words import (
    EventStatus,
    HostState,
    Kind,
    MachineId,
    StageKind,
    StageState,
    StepState,
)


def go_on(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Carry such a stage as far as it can go now; its events do not wait for each other."""
    if not order.stages[index].steps:
        return _with_state(order, index, StageState.DONE)
    alone = _one_by_one(order)
    order = moves.retry_failed(draft, order, index, policy)
    order = _withdraw_stale(draft, order, index, policy)
    order, unannounced = _announce(draft, order, alone, index, policy)
    order, unstarted = _start(draft, order, alone, index, policy)
    order = _begin(draft, order, index)
    stage = order.stages[index]
    if stages.settled(stage.steps):
        return replace(_with_state(order, index, StageState.DONE), waiting=())
    working = reasons.not_to_finish(draft, order, _under_way(draft, order, index))
    lowered = moves.waiting_for_notice(draft, order, index, departures.stage_events(draft, order, index))
    started = _under_way(draft, order, index).steps
    left = tuple(step for step in started if step.state is StepState.WAITING)
    working = (*working, *lowered, *(_not_to_send(draft, order, index, left) if left else ()))
    return replace(order, waiting=tuple(dict.fromkeys((*working, *unstarted, *unannounced))))


def withdraw(draft: Draft, order: Order, index: int, *, why: str) -> Order:
    """Withdraw what such a stage has announced and not started."""
    for event in departures.stage_events(draft, order, index):
        if event.status is EventStatus.SCHEDULED:
            events.end(draft, event, Kind.EVENT_WITHDRAWN, why=why)
    return _with_state(order, index, _state(draft, order, index))


def moments(draft: Draft, order: Order, index: int, policy: Policy) -> list[datetime]:
    """Return when such a stage is to be looked at again."""
    listed = departures.stage_events(draft, order, index)
    alone, stage = _one_by_one(order), order.stages[index]
    found = [step.look_at for step in stage.steps if step.look_at is not None]
    found += moves.retry_times(stage, draft.now)
    for event in (each for each in listed if each.status is EventStatus.SCHEDULED):
        share = _steps_of(stage, event)
        opens = reasons.timing(draft, alone, share, policy).start_at(draft.now)
        # One that is approved and has no slot yet moves on when its time has come.
        later = [events.may_start_at(draft, event), event.not_before, *([] if opens is None else [opens])]
        later += [] if event.armed else [arm_at(event, policy)]
        found += [moment for moment in later if moment > draft.now]
        found.append(event.not_before + policy.stale_after)
    for share in service.shares(_untold(draft, order, index)):
        at = reasons.announce_at(draft, alone, share, policy)
        found += [at] if at is not None and at > draft.now else []
    return found


def _one_by_one(order: Order) -> Order:
    """Return an order as it binds moves: what is done together is the work on the host alone."""
    return replace(order, terms=replace(order.terms, together=""))


def _withdraw_stale(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Withdraw what could not start for too long (rule 11); it is announced again."""
    stale = [
        event
        for event in departures.stage_events(draft, order, index)
        if event.status is EventStatus.SCHEDULED and draft.now >= event.not_before + policy.stale_after
    ]
    again: dict[MachineId, Step] = {}
    for event in stale:
        events.end(draft, event, Kind.EVENT_WITHDRAWN, why=events.stale((event,)))
        for step in _steps_of(order.stages[index], event):
            again[step.machine] = replace(step, withdrawals=step.withdrawals + 1)
    return stages.put_steps(order, index, again)


# Announcing


def _announce(
    draft: Draft, order: Order, alone: Order, index: int, policy: Policy
) -> tuple[Order, list[Waiting]]:
    """Announce every share that may be; return why others are not.

    A host is emptied only if all its machines have a place elsewhere together, and they keep it from the
    first announcement on. Two hosts would else each keep the places that the other still needs.
    """
    waiting: list[Waiting] = []
    order = _prechecked(draft, order, alone, index, policy)
    untold = _untold(draft, order, index)
    homeless = _homeless(draft, order, index, untold)
    for share in service.shares(untold):
        why = _not_to_announce(draft, order, alone, index, share, policy)
        why = why or move_prechecks.waiting(draft, order, share, policy)
        if why or homeless:
            waiting += why
            continue
        order = replace(order, announced_at=order.announced_at or draft.now)
        slots = Slots(draft, order, index, departures.stage_events(draft, order, index))
        notice = notice_of(order, share[0].work, reasons.groups_of(draft, share), policy)
        if not order.terms.emergency:
            notice = replace(notice, ahead=max(notice.ahead, slots.turn() - draft.now))
        armed = armed_at_once(notice)
        announced = events.announce(draft, alone, index, share, notice, armed=armed)
        arming.record_emergency(draft, alone, announced, policy)
        if order.stages[index].kind is StageKind.EVACUATE:
            order = stages.put_steps(order, index, placement.reserved(draft, order, untold))
            host_work.cordon(draft, order)
    return _with_state(order, index, _state(draft, order, index)), [*homeless, *waiting]


def _homeless(draft: Draft, order: Order, index: int, untold: Sequence[Step]) -> tuple[Waiting, ...]:
    """Return the machines without a place elsewhere, as long as nothing of an evacuation is announced."""
    stage = order.stages[index]
    if stage.kind is not StageKind.EVACUATE or stage.state is not StageState.QUEUED or order.terms.emergency:
        return ()
    return placement.without_room(draft, order, untold)


def _prechecked(draft: Draft, order: Order, alone: Order, index: int, policy: Policy) -> Order:
    """Have the driver asked about the machines that could be told now, all at once."""
    if not move_prechecks.is_asked(order, policy):
        return order
    shares = service.shares(_untold(draft, order, index))
    ready = [each for each in shares if not _not_to_announce(draft, order, alone, index, each, policy)]
    return move_prechecks.ask(draft, order, index, [step for share in ready for step in share], policy)


def _not_to_announce(
    draft: Draft, order: Order, alone: Order, index: int, share: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    return (*_not_to_send(draft, order, index, share), *reasons.not_to_announce(draft, alone, share, policy))


def _untold(draft: Draft, order: Order, index: int) -> list[Step]:
    told = _told(draft, order, index)
    waiting = (step for step in order.stages[index].steps if step.state is StepState.WAITING)
    return [step for step in waiting if step.machine not in told and not moves.is_resting(step, draft.now)]


def _told(draft: Draft, order: Order, index: int) -> set[MachineId]:
    listed = departures.stage_events(draft, order, index)
    return {resource.machine for event in listed for resource in event.resources}


def _not_to_send(draft: Draft, order: Order, index: int, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return why machines cannot leave, or come back to, a host: their target is closed or out of reach."""
    if order.stages[index].kind is StageKind.RETURN:
        return _not_to_return(draft, order)
    return placement.out_of_reach(draft, order, affected)


def _not_to_return(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return why machines cannot come back to a host: it was closed otherwise, or cannot be reached."""
    host = draft.hosts.get(order.host) if order.host else None
    if host is None or host.is_usable:
        return ()
    reason = f"is {host.state}: nobody comes back to it"
    if host.state is HostState.OK and host.unreachable_since is not None:
        reason = f"cannot be reached since {format_time(host.unreachable_since)}: machines come back later"
    return (Waiting(what=f"host {host.name}", reason=reason, room=True),)


# Starting


def _start(
    draft: Draft, order: Order, alone: Order, index: int, policy: Policy
) -> tuple[Order, list[Waiting]]:
    """Start every event that may, each by itself."""
    waiting: list[Waiting] = []
    for event in sorted(
        departures.stage_events(draft, order, index), key=lambda each: (each.not_before, each.number)
    ):
        if event.status is not EventStatus.SCHEDULED:
            continue
        unarmed = arming.arm(draft, alone, (event,), policy)
        event = draft.events[event.id]
        why = (*unarmed, *_not_to_start(draft, alone, index, event, policy))
        if not why and not Slots(draft, order, index, departures.stage_events(draft, order, index)).is_free:
            why = (_postponed(draft, order, index, event),)
        waiting += why
        if not why:
            events.start(draft, event, why=events.cause(event))
            order = stages.counted_again(order)
    return _with_state(order, index, _state(draft, order, index), now=draft.now), waiting


def _not_to_start(
    draft: Draft, alone: Order, index: int, event: Event, policy: Policy
) -> tuple[Waiting, ...]:
    stage = alone.stages[index]
    share = share_of(stage, event)
    return (
        *host_work.not_cordoned(alone),
        *_not_to_send(draft, alone, index, share.steps),
        *reasons.not_to_start_alone(draft, alone, share, event, policy),
    )


def _postponed(draft: Draft, order: Order, index: int, event: Event) -> Waiting:
    """Give an event whose time has come, and that has no slot yet, a later one; return what it waits for."""
    listed = departures.stage_events(draft, order, index)
    running = (step.name for step in order.stages[index].steps if step.state is StepState.RUNNING)
    others = machine_names(running)
    reason = f"waits for its turn, after {others}" if others else "waits for its turn"
    if draft.now >= event.not_before:
        turn = Slots(draft, order, index, listed).turn(but=event)
        event = events.postpone(draft, event, until=turn, reason=reason)
    return Waiting(
        what=event.id, reason=f"{reason}; expected at {format_time(event.not_before)}", until=event.not_before
    )


# Moving


def _begin(draft: Draft, order: Order, index: int) -> Order:
    """Begin to move the machines of started events, as long as there are slots."""
    listed = departures.stage_events(draft, order, index)
    started = sorted(
        (event for event in listed if event.status is EventStatus.STARTED),
        key=lambda event: (event.started_at or event.not_before, event.number),
    )
    idle = Slots(draft, order, index, listed).idle
    back = order.host if order.stages[index].kind is StageKind.RETURN else None
    begun: dict[MachineId, Step] = {}
    for step in (step for event in started for step in _steps_of(order.stages[index], event)):
        if idle is not None and len(begun) >= idle:
            break
        waits = step.state is StepState.WAITING and not lost_hosts.strands(draft, order, step)
        waits = waits and not _not_to_send(draft, order, index, (step,))
        if waits and not steps.running_elsewhere(draft, step.machine, order):
            begun[step.machine] = steps.begin(draft, order, step, to=back)
            departures.wake_others(draft, order, step.machine)
    return stages.put_steps(order, index, begun)


def _under_way(draft: Draft, order: Order, index: int) -> Stage:
    """Return a stage with only the machines of its started events: of those it is said what they wait for."""
    stage = order.stages[index]
    listed = departures.stage_events(draft, order, index)
    started = [event for event in listed if event.status is EventStatus.STARTED]
    return replace(stage, steps=tuple(step for event in started for step in _steps_of(stage, event)))


def share_of(stage: Stage, event: Event) -> Stage:
    """Return a stage with only the machines of one of its events."""
    return replace(stage, steps=_steps_of(stage, event))


def _steps_of(stage: Stage, event: Event) -> tuple[Step, ...]:
    return events.told_by(event, stage.steps)


# The state of the stage


def _state(draft: Draft, order: Order, index: int) -> StageState:
    """Return how far such a stage is: announced with its first event, started with its first start."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if stage.started_at is not None or any(event.status is EventStatus.STARTED for event in listed):
        return StageState.STARTED
    return StageState.ANNOUNCED if listed else StageState.QUEUED


def _with_state(order: Order, index: int, state: StageState, *, now: datetime | None = None) -> Order:
    stage = order.stages[index]
    started_at = stage.started_at or (now if state is StageState.STARTED else None)
    return stages.put_stage(order, index, replace(stage, state=state, started_at=started_at))
