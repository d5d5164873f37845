"""How a stage is announced: in shares that start together, and with machines that come later.

A share is a whole stage, or, where machines leave a host or come back to it, the machines of one update
domain of a group that go the same way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    HostState,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Step
from forewarn.core.time_formats import format_time
from forewarn.core.orders import (
    arming,
    departures,
    events,
    host_work,
    move_prechecks,
    moves,
    placement,
    reasons,
    service,
    stages,
)
from forewarn.core.orders.events import armed_at_once
from forewarn.core.orders.moves import Slots
from forewarn.core.policy import Notice, Policy, notice_of
from forewarn.core.redaction import machine_names


def announce(draft: Draft, order: Order, index: int, policy: Policy) -> tuple[Order, tuple[Waiting, ...]]:
    """Announce every share that may be; return why others are not.

    A host is emptied only if all its machines have a place elsewhere together, and they keep it from the
    first announcement on. Two hosts would else each keep the places that the other still needs.
    """
    order = _prechecked(draft, order, index, policy)
    untold = _untold(draft, order, index)
    homeless = _homeless(draft, order, index, untold)
    waiting = list(homeless)
    for share in to_be_told(draft, order, index):
        why = _not_to_announce(draft, order, index, share, policy)
        why = why or move_prechecks.waiting(draft, order, share, policy)
        waiting += why
        if not why and not homeless:
            order = _tell(draft, order, index, share, policy)
            if order.stages[index].kind is not StageKind.RETURN and order.action is not Action.FAIL:
                order = stages.put_steps(order, index, placement.reserved(draft, order, untold))
            if order.stages[index].kind is StageKind.EVACUATE:
                host_work.cordon(draft, order)
    if stages.is_apart(order.stages[index]):
        order = stages.put_state(order, index, state_of(draft, order, index))
    return order, tuple(dict.fromkeys(waiting))


def _tell(draft: Draft, order: Order, index: int, share: tuple[Step, ...], policy: Policy) -> Order:
    stage, binding = order.stages[index], bound(order, index)
    if stage.kind is StageKind.HOST:
        host_work.cordon(draft, order)
    if share and _is_announced(draft, order, share):
        order = replace(order, announced_at=order.announced_at or draft.now)
        notice = _notice(draft, order, index, share, policy)
        announced = events.announce(draft, binding, index, share, notice, armed=armed_at_once(notice))
        arming.record_emergency(draft, binding, announced, policy)
    return order if stages.is_apart(stage) else stages.put_state(order, index, StageState.ANNOUNCED)


def _notice(draft: Draft, order: Order, index: int, affected: tuple[Step, ...], policy: Policy) -> Notice:
    """Return what a share announces: machines that are treated alike hear the same."""
    notice = notice_of(order, affected[0].work, reasons.groups_of(draft, affected), policy)
    if not stages.is_apart(order.stages[index]) or order.terms.emergency:
        return notice
    slots = Slots(draft, order, index, departures.stage_events(draft, order, index))
    return replace(notice, ahead=max(notice.ahead, slots.turn() - draft.now))


def _is_announced(draft: Draft, order: Order, affected: tuple[Step, ...]) -> bool:
    """A user's own restart of a machine whose group does not listen makes no event; a start never does.

    What was announced once is announced again, whether anybody listens or not (rule 12).
    """
    if order.work is Work.START:
        return False
    listens = any(draft.groups[step.group].enabled for step in affected)
    return listens or order.announced_at is not None or not ACTIONS[order.action].only_if_enabled


def _homeless(draft: Draft, order: Order, index: int, untold: Sequence[Step]) -> tuple[Waiting, ...]:
    """Return the machines without a place elsewhere, as long as nothing of an evacuation is announced."""
    stage = order.stages[index]
    if stage.kind is not StageKind.EVACUATE or stage.state is not StageState.QUEUED or order.terms.emergency:
        return ()
    return placement.without_room(draft, order, untold)


def _prechecked(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Have the driver asked about the machines that could be told now, all at once."""
    if not move_prechecks.is_asked(order, policy):
        return order
    told = to_be_told(draft, order, index)
    ready = [each for each in told if not _not_to_announce(draft, order, index, each, policy)]
    return move_prechecks.ask(draft, order, index, [step for share in ready for step in share], policy)


def _not_to_announce(
    draft: Draft, order: Order, index: int, share: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    kept = reasons.not_to_announce(draft, bound(order, index), share, policy)
    away = not_to_send(draft, order, index, share)
    if stages.is_apart(order.stages[index]):
        return (*away, *kept)
    return (*reasons.divided(draft, order, policy), *kept, *away)


def to_be_told(draft: Draft, order: Order, index: int) -> list[tuple[Step, ...]]:
    """Return what of a stage is to be announced, in the shares that it is announced in."""
    untold = _untold(draft, order, index)
    if stages.is_apart(order.stages[index]):
        return service.shares(untold)
    return [tuple(untold)] if order.stages[index].state is StageState.QUEUED else []


def _untold(draft: Draft, order: Order, index: int) -> Sequence[Step]:
    if not stages.is_apart(order.stages[index]):
        return order.stages[index].steps
    listed = departures.stage_events(draft, order, index)
    told = {resource.machine for event in listed for resource in event.resources}
    waiting = (step for step in order.stages[index].steps if step.state is StepState.WAITING)
    return [step for step in waiting if step.machine not in told and not moves.is_resting(step, draft.now)]


def not_to_send(draft: Draft, order: Order, index: int, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return why machines cannot leave, or come back to, a host: their target is closed or out of reach."""
    if order.stages[index].kind is StageKind.RETURN:
        return not_to_return(draft, order)
    return () if order.action is Action.FAIL else placement.out_of_reach(draft, order, affected)


def not_to_return(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return why machines cannot come back to a host: it was closed otherwise, or cannot be reached."""
    host = draft.hosts.get(order.host) if order.host else None
    if host is None or host.is_usable:
        return ()
    reason = f"is {host.state}: nobody comes back to it"
    if host.state is HostState.OK and host.unreachable_since is not None:
        reason = f"cannot be reached since {format_time(host.unreachable_since)}: machines come back later"
    return (Waiting(what=f"host {host.name}", reason=reason, room=True),)


def bound(order: Order, index: int) -> Order:
    """Return an order as it binds a stage: work that is done together leaves moves one by one."""
    together = order.terms.together and stages.is_apart(order.stages[index])
    return replace(order, terms=replace(order.terms, together="")) if together else order


def state_of(draft: Draft, order: Order, index: int) -> StageState:
    """Return how far a stage of moves is: announced with its first event, started with its first start."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if stage.started_at is not None or any(event.status is EventStatus.STARTED for event in listed):
        return StageState.STARTED
    return StageState.ANNOUNCED if listed else StageState.QUEUED


# Machines that come after the announcement


def take_latecomers(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Give a machine that came after the announcement its own event; the stage waits for it."""
    stage, late = order.stages[index], _joining(draft, order, index, policy)
    if not late:
        return order
    order, late = _with_prechecks(draft, order, index, late, policy)
    if move_prechecks.waiting(draft, order, late, policy):
        return order
    notice, before = _notice(draft, order, index, late, policy), departures.stage_events(draft, order, index)
    armed = is_armed(before) if before else armed_at_once(notice)
    announced = events.announce(draft, order, index, late, notice, armed=armed)
    order = stages.put_stage(order, index, stages.with_joining(stage, late))
    arming.record_emergency(draft, order, announced, policy)
    order = stages.put_steps(order, index, placement.reserved(draft, order, late))
    return replanned(draft, order)


def _with_prechecks(
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
    armed = is_armed(before) if before else None
    for step in sorted(latecomers(draft, order, index), key=lambda each: each.update_domain):
        joined = stages.with_joining(order.stages[index], late)
        alone = stages.fits(joined, step, draft.groups[step.group].policy)
        if (alone or order.terms.together) and not reasons.not_to_announce(
            draft, order, (*late, step), policy, armed=armed
        ):
            late += (step,)
    return late


def latecomers(draft: Draft, order: Order, index: int) -> tuple[Step, ...]:
    """The machines that came after a stage was announced and could join it."""
    later = (stage for stage in order.stages[index + 1 :] if stage.kind is order.stages[index].kind)
    queued = (step for stage in later for step in stage.steps)
    if order.terms.together:
        return tuple(queued)
    return tuple(
        step for step in queued if stages.fits(order.stages[index], step, draft.groups[step.group].policy)
    )


def is_armed(announced: Sequence[Event]) -> bool:
    """Return whether a stage is armed; its events are armed together."""
    return any(event.armed for event in announced)


def given_way(order: Order, late: Sequence[Step], others: Iterable[Waiting]) -> str:
    """Say why an armed stage that waits for latecomers alone is withdrawn; nothing if it is not.

    A latecomer may wait for groups or room that another armed stage keeps, and that one for a latecomer of
    its own: neither would ever start. The stage is announced again with all its machines.
    """
    if not any(why.group is not None or why.room for why in others):
        return ""
    names = machine_names(step.name for step in late)
    return f"{names} came to {order.host} and cannot be announced yet; announced again together"


def replanned(draft: Draft, order: Order) -> Order:
    """Lay out what an order has not announced yet."""
    return service.replan(draft, order) if order.action is Action.SERVICE else stages.replan(draft, order)
