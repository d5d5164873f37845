"""How an order goes on: stages are announced, started, carried out; one function says what is next.

`advance` may be called at any time and as often as one likes: it does what can be done now, and nothing
the second time. All that waits carries its reason.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from forewarn.core.catalogue import ACTIONS
from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import (
    abandonment,
    arming,
    departures,
    evacuation,
    events,
    fencing,
    host_failures,
    host_work,
    lost_hosts,
    move_prechecks,
    placement,
    reasons,
    recommendations,
    service,
    stages,
    steps,
    superseding,
    winding_down,
)
from forewarn.core.orders.events import arm_at, armed_at_once
from forewarn.core.policy import Notice, Policy, notice_of
from forewarn.core.redaction import machine_names
from forewarn.core.words import (
    Action,
    EventStatus,
    Kind,
    MachineId,
    MachineName,
    OrderId,
    OrderState,
    StageKind,
    StageState,
    StepState,
    Work,
)


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
    if stage.kind in service.MOVING:  # each event goes by itself
        stage, announced = evacuation.share_of(stage, event), (event,)
    latest = reasons.timing(draft, order, stage.steps, policy).latest(event.not_before, now=draft.now)
    events.defer(draft, announced, event, by=by, wanted=wanted, latest=latest)
    advance(draft, event.order, policy=policy)


def pause(draft: Draft, order: OrderId, *, why: str) -> None:
    """Withdraw what an order has announced and not started; it announces nothing more until it is resumed."""
    mine = draft.orders[order]
    mine = draft.put_order(replace(mine, terms=replace(mine.terms, paused=why)))
    for index in stages.active(mine):
        if mine.stages[index].kind in service.MOVING:
            mine = evacuation.withdraw(draft, mine, index, why=why)
        elif mine.stages[index].state is StageState.ANNOUNCED:
            mine = _withdraw(draft, mine, index, departures.stage_events(draft, mine, index), why=why)
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
    order = order if order.terms.winding_down else _replanned(draft, order)
    if order.action is Action.SERVICE:
        order = lost_hosts.look(draft, host_work.go_on(draft, order, policy), policy)
    departures.finish_events(draft, order, policy)
    live = stages.active(order)
    # Whoever is found on a failed host later waits for nobody there.
    late = order.action is Action.FAIL and any(stage.state is StageState.QUEUED for stage in order.stages)
    if not live or late:
        return _announce_next(draft, order, policy)
    for index in live:
        if order.stages[index].kind in service.MOVING:
            order = evacuation.go_on(draft, order, index, policy)
        elif order.stages[index].state is StageState.ANNOUNCED:
            order = _announced(draft, order, index, policy)
        else:
            order = _started(draft, order, index, policy)
    return order


def _replanned(draft: Draft, order: Order) -> Order:
    return service.replan(draft, order) if order.action is Action.SERVICE else stages.replan(draft, order)


# Announcing


def _announce_next(draft: Draft, order: Order, policy: Policy) -> Order:
    queued = [index for index, stage in enumerate(order.stages) if stage.state is StageState.QUEUED]
    if not queued:
        return _end(draft, order, policy)
    if order.stages[queued[0]].kind in service.MOVING:
        return evacuation.go_on(draft, order, queued[0], policy)
    # A failed host takes all its update domains down together; everything else goes stage by stage.
    turn = queued if order.action is Action.FAIL else queued[:1]
    for index in turn:
        waiting = (
            *reasons.divided(draft, order, policy),
            *reasons.not_to_announce(draft, order, order.stages[index].steps, policy),
            *_unreached(draft, order, order.stages[index].steps),
        )
        if waiting:
            return replace(order, waiting=tuple(dict.fromkeys(waiting)))
        order = move_prechecks.ask(draft, order, index, order.stages[index].steps, policy)
        if waiting := move_prechecks.waiting(draft, order, order.stages[index].steps, policy):
            return replace(order, waiting=waiting)
        order = _announce(draft, order, index, policy)
    return replace(order, waiting=())


def _unreached(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return the machines that no reachable host could take; the failure of a host does not wait for that."""
    return () if order.action is Action.FAIL else placement.out_of_reach(draft, order, affected)


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


def _announce(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    stage = order.stages[index]
    host_work.cordon(draft, order)
    if stage.steps and _is_announced(draft, order, stage.steps):
        order = replace(order, announced_at=order.announced_at or draft.now)
        notice = _notice(draft, order, stage.steps, policy)
        armed = armed_at_once(notice)
        announced = events.announce(draft, order, index, stage.steps, notice, armed=armed)
        arming.record_emergency(draft, order, announced, policy)
        if order.action is Action.FAIL:
            return _start(draft, order, index, announced)
    order = stages.put_stage(order, index, replace(stage, state=StageState.ANNOUNCED))
    return stages.put_steps(order, index, placement.reserved(draft, order, stage.steps))


def _notice(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Notice:
    """Return what a stage announces: machines that are treated alike hear the same."""
    return notice_of(order, affected[0].work, reasons.groups_of(draft, affected), policy)


def _is_announced(draft: Draft, order: Order, affected: tuple[Step, ...]) -> bool:
    """A user's own restart of a machine whose group does not listen makes no event; a start never does.

    What was announced once is announced again, whether anybody listens or not (rule 12).
    """
    if order.work is Work.START:
        return False
    listens = any(draft.groups[step.group].enabled for step in affected)
    return listens or order.announced_at is not None or not ACTIONS[order.action].only_if_enabled


# Announced: waiting for approvals, for NotBefore, for machines to be free


def _announced(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = _take_latecomers(draft, order, index, policy)
    announced = departures.stage_events(draft, order, index)
    if announced and draft.now >= _stale_at(announced, policy):
        return _to_be_announced_again(draft, order, index, announced, why=events.stale(announced))
    unarmed = arming.arm(draft, order, announced, policy)
    announced = departures.stage_events(draft, order, index)
    waiting = (
        *unarmed,
        *host_work.not_cordoned(order),
        *reasons.not_to_start(draft, order, order.stages[index], announced, policy),
        *_unreached(draft, order, order.stages[index].steps),
    )
    if not waiting:
        return replace(_start(draft, order, index, announced), waiting=())
    armed = _is_armed(announced)
    late = _latecomers(draft, order, index)
    others = [
        why for step in late for why in reasons.not_to_announce(draft, order, (step,), policy, armed=armed)
    ]
    others += move_prechecks.waiting(
        draft, order, (step for step in late if step.precheck is not None), policy
    )
    only_untold = set(waiting) <= set(reasons.untold(draft, order, order.stages[index]))
    if armed and only_untold and (why := _given_way(order, late, others)):
        return _to_be_announced_again(draft, order, index, announced, why=why)
    return replace(order, waiting=tuple(dict.fromkeys((*waiting, *others))))


def _is_armed(announced: Sequence[Event]) -> bool:
    """Return whether a stage is armed; its events are armed together."""
    return any(event.armed for event in announced)


def _given_way(order: Order, late: Sequence[Step], others: Iterable[Waiting]) -> str:
    """Say why an armed stage that waits for latecomers alone is withdrawn; nothing if it is not.

    A latecomer may wait for groups or room that another armed stage keeps, and that one for a latecomer of
    its own: neither would ever start. The stage is announced again with all its machines.
    """
    if not any(why.group is not None or why.room for why in others):
        return ""
    names = machine_names(step.name for step in late)
    return f"{names} came to {order.host} and cannot be announced yet; announced again together"


def _take_latecomers(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Give a machine that came after the announcement its own event; the stage waits for it."""
    stage, late = order.stages[index], _joining(draft, order, index, policy)
    if not late:
        return order
    order, late = _prechecked(draft, order, index, late, policy)
    if move_prechecks.waiting(draft, order, late, policy):
        return order
    notice, before = _notice(draft, order, late, policy), departures.stage_events(draft, order, index)
    armed = _is_armed(before) if before else armed_at_once(notice)
    announced = events.announce(draft, order, index, late, notice, armed=armed)
    order = stages.put_stage(order, index, stages.with_joining(stage, late))
    arming.record_emergency(draft, order, announced, policy)
    order = stages.put_steps(order, index, placement.reserved(draft, order, late))
    return _replanned(draft, order)


def _prechecked(
    draft: Draft, order: Order, index: int, late: tuple[Step, ...], policy: Policy
) -> tuple[Order, tuple[Step, ...]]:
    """Have the driver asked whether latecomers can move; return them as they are then."""
    machines = {step.machine for step in late}
    for later in range(index + 1, len(order.stages)):
        mine = [step for step in order.stages[later].steps if step.machine in machines]
        order = move_prechecks.ask(draft, order, later, mine, policy)
    after = (step for stage in order.stages[index + 1 :] for step in stage.steps)
    return order, tuple(step for step in after if step.machine in machines)


def _joining(draft: Draft, order: Order, index: int, policy: Policy) -> tuple[Step, ...]:
    """Choose the latecomers that may join together: of one update domain of a group, the lowest."""
    late: tuple[Step, ...] = ()
    before = departures.stage_events(draft, order, index)
    armed = _is_armed(before) if before else None
    for step in sorted(_latecomers(draft, order, index), key=lambda each: each.update_domain):
        joined = stages.with_joining(order.stages[index], late)
        alone = stages.fits(joined, step, draft.groups[step.group].policy)
        if (alone or order.terms.together) and not reasons.not_to_announce(
            draft, order, (*late, step), policy, armed=armed
        ):
            late += (step,)
    return late


def _latecomers(draft: Draft, order: Order, index: int) -> tuple[Step, ...]:
    """The machines that came after a stage was announced and could join it."""
    later = (stage for stage in order.stages[index + 1 :] if stage.kind is order.stages[index].kind)
    queued = (step for stage in later for step in stage.steps)
    if order.terms.together:
        return tuple(queued)
    return tuple(
        step for step in queued if stages.fits(order.stages[index], step, draft.groups[step.group].policy)
    )


def _to_be_announced_again(
    draft: Draft, order: Order, index: int, announced: tuple[Event, ...], *, why: str
) -> Order:
    order = replace(order, withdrawals=order.withdrawals + 1)
    return _withdraw(draft, order, index, announced, why=why)


def _withdraw(draft: Draft, order: Order, index: int, announced: tuple[Event, ...], *, why: str) -> Order:
    for event in announced:
        events.end(draft, event, Kind.EVENT_WITHDRAWN, why=why)
    return stages.put_stage(order, index, replace(order.stages[index], state=StageState.QUEUED))


def _start(draft: Draft, order: Order, index: int, announced: tuple[Event, ...]) -> Order:
    for event in announced:
        events.start(draft, event, why=_cause(order, event))
    stage = replace(order.stages[index], state=StageState.STARTED, started_at=draft.now)
    return stages.put_stage(stages.counted_again(order), index, stage)


def _cause(order: Order, event: Event) -> str:
    return f"host {order.host} failed" if order.action is Action.FAIL else events.cause(event)


# Started: steps are carried out, events linger, stages end


def _started(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    order = _begin_steps(draft, fencing.go_on(draft, order, policy), index)
    stage = order.stages[index]
    worked_on = stage.kind is not StageKind.HOST or host_work.is_settled(order)
    over = stages.settled(stage.steps) and worked_on
    if over and not departures.stage_events(draft, order, index):
        return stages.put_stage(order, index, replace(stage, state=StageState.DONE))
    listed = departures.waiting_to_finish(draft, order, policy) if over else ()
    away = placement.out_of_reach(draft, order, stage.steps)
    return replace(order, waiting=(*reasons.not_to_finish(draft, order, stage), *away, *listed))


def _begin_steps(draft: Draft, order: Order, index: int) -> Order:
    begun: dict[MachineId, Step] = {}
    if order.action is Action.FAIL and (
        not fencing.is_fenced(order) or host_failures.is_superseded(draft, order)
    ):
        return order
    for step in order.stages[index].steps:
        # A step that is tried again may find its machine in other hands.
        if step.state is not StepState.WAITING or lost_hosts.strands(draft, order, step):
            continue
        if placement.out_of_reach(draft, order, (step,)):
            if step.work is Work.RECOVER:
                steps.take_down(draft, step)  # whether or not there is a host for it
            continue
        if not steps.running_elsewhere(draft, step.machine, order):
            begun[step.machine] = _begun(draft, order, step)
            if order.stages[index].kind is StageKind.HOST:  # it restarts with its host, and is verified then
                begun[step.machine] = replace(begun[step.machine], look_at=None)
            departures.wake_others(draft, order, step.machine)
    return stages.put_steps(order, index, begun)


def _begun(draft: Draft, order: Order, step: Step) -> Step:
    """Begin a step; whoever is to leave a host that is fenced has left it."""
    host, begun = draft.machines[step.machine].host, steps.begin(draft, order, step)
    gone = ACTIONS[order.action].leaves and fencing.is_gone(draft, host)
    return superseding.end_departure(draft, order, begun) if gone else begun


# When to look again


def _due(draft: Draft, order: Order, policy: Policy) -> datetime | None:
    live = stages.active(order)
    moments = [moment for index in live for moment in _moments(draft, order, index, policy)]
    moments += [step.look_at for step in order.running_host_steps if step.look_at is not None]
    moments += departures.finish_times(draft, order, policy)
    back_by = lost_hosts.due_at(draft, order)
    moments += [] if back_by is None else [back_by]
    moments += move_prechecks.moments(order, draft.now)
    queued = [stage for stage in order.stages if stage.state is StageState.QUEUED]
    if not live and queued and queued[0].kind in service.MOVING:
        moments += evacuation.moments(draft, order, order.stages.index(queued[0]), policy)
    elif not live and queued:
        at = reasons.announce_at(draft, order, queued[0].steps, policy)
        moments += [at] if at is not None and at > draft.now else []
    return min(moments, default=None)


def _moments(draft: Draft, order: Order, index: int, policy: Policy) -> list[datetime]:
    stage, announced = order.stages[index], departures.stage_events(draft, order, index)
    if stage.kind in service.MOVING:
        return evacuation.moments(draft, order, index, policy)
    if stage.state is StageState.ANNOUNCED:
        starts = [events.may_start_at(draft, event) for event in announced]
        starts += [arm_at(event, policy) for event in announced if not event.armed]
        later = [moment for moment in starts if moment > draft.now]
        opens = reasons.timing(draft, order, stage.steps, policy).start_at(draft.now)
        later += [opens] if opens is not None and opens > draft.now else []
        return later + ([_stale_at(announced, policy)] if announced else [])
    return [step.look_at for step in stage.steps if step.look_at is not None]


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


def _stale_at(announced: tuple[Event, ...], policy: Policy) -> datetime:
    return min(event.not_before for event in announced) + policy.stale_after
