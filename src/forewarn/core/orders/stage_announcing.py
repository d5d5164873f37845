"""Announce a stage in shares, and announce machines that arrive later.

A share is what starts together: usually a whole stage. If machines leave a host or return to it, each share
has the machines of one update domain of a group that do so in the same way.
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
from forewarn.core.policy import Notice, Policy, notice_of
from forewarn.core.redaction import machine_names
from forewarn.core.time_formats import format_time


def announce(draft: Draft, order: Order, index: int, policy: Policy) -> tuple[Order, tuple[Waiting, ...]]:
    """Announce every share that may be announced; return why the others may not.

    An evacuation begins only if all machines have a place on other hosts, and reserves these places with
    its first announcement. Otherwise two evacuations could each hold places that the other needs.
    """
    if move_prechecks.applies(order, policy):  # ask about all machines that could be announced now
        ready = [
            step
            for share in unannounced_shares(draft, order, index)
            if not _why_not_announced(draft, order, index, share, policy)
            for step in share
        ]
        order = move_prechecks.ask(draft, order, index, ready, policy)
    stage, unannounced = order.stages[index], _unannounced(draft, order, index)
    homeless: tuple[Waiting, ...] = ()
    first = stage.kind is StageKind.EVACUATE and stage.state is StageState.QUEUED
    if first and not order.terms.emergency:
        homeless = placement.machines_without_room(draft, order, unannounced)
    waiting = list(homeless)
    for share in unannounced_shares(draft, order, index):
        why = _why_not_announced(draft, order, index, share, policy)
        why = why or move_prechecks.waiting(draft, order, share, policy)
        waiting += why
        if not why and not homeless:
            order = _announce_share(draft, order, index, share, policy)
            if stage.kind is not StageKind.RETURN and order.action is not Action.FAIL:
                order = stages.put_steps(order, index, placement.reserve_hosts(draft, order, unannounced))
            if stage.kind is StageKind.EVACUATE:
                host_work.cordon(draft, order)
    if stages.starts_per_event(stage):
        order = stages.put_state(order, index, state_of(draft, order, index))
    return order, tuple(dict.fromkeys(waiting))


def _announce_share(draft: Draft, order: Order, index: int, share: tuple[Step, ...], policy: Policy) -> Order:
    stage, effective = order.stages[index], effective_order(order, index)
    if stage.kind is StageKind.HOST:
        host_work.cordon(draft, order)
    if share and _is_announced(draft, order, share):
        order = replace(order, announced_at=order.announced_at or draft.now)
        notice = _notice(draft, order, index, share, policy)
        armed = events.armed_at_once(notice)
        announced = events.announce(draft, effective, index, share, notice, armed=armed)
        arming.record_emergency(draft, effective, announced, policy)
    return order if stages.starts_per_event(stage) else stages.put_state(order, index, StageState.ANNOUNCED)


def _notice(draft: Draft, order: Order, index: int, affected: tuple[Step, ...], policy: Policy) -> Notice:
    """Return the notice of a share; a machine that must wait for a slot gets more."""
    notice = notice_of(order, affected[0].work, reasons.groups_of(draft, affected), policy)
    if not stages.starts_per_event(order.stages[index]) or order.terms.emergency:
        return notice
    return replace(notice, ahead=max(notice.ahead, moves.Slots(draft, order, index).turn() - draft.now))


def _is_announced(draft: Draft, order: Order, affected: tuple[Step, ...]) -> bool:
    """Return whether a share gets events.

    A start gets none. A user's own restart gets none if the group has not enabled Scheduled Events. An order
    that was announced once is announced again in any case (rule 12).
    """
    if order.work is Work.START:
        return False
    enabled = any(draft.groups[step.group].enabled for step in affected)
    return enabled or order.announced_at is not None or not ACTIONS[order.action].only_if_enabled


def _why_not_announced(
    draft: Draft, order: Order, index: int, share: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    kept = reasons.why_not_announced(draft, effective_order(order, index), share, policy)
    away = why_not_sent(draft, order, index, share)
    if stages.starts_per_event(order.stages[index]):
        return (*away, *kept)
    return (*reasons.divided_groups(draft, order, policy), *kept, *away)


def unannounced_shares(draft: Draft, order: Order, index: int) -> list[tuple[Step, ...]]:
    """Return the steps of a stage that are to be announced, by share."""
    unannounced = _unannounced(draft, order, index)
    if stages.starts_per_event(order.stages[index]):
        return service.shares(unannounced)
    return [tuple(unannounced)] if order.stages[index].state is StageState.QUEUED else []


def _unannounced(draft: Draft, order: Order, index: int) -> Sequence[Step]:
    stage = order.stages[index]
    if not stages.starts_per_event(stage):
        return stage.steps
    listed = departures.stage_events(draft, order, index)
    announced = {resource.machine for event in listed for resource in event.resources}
    waiting = (step for step in stage.steps if step.state is StepState.WAITING)
    return [
        step for step in waiting if step.machine not in announced and not moves.is_resting(step, draft.now)
    ]


def why_not_sent(draft: Draft, order: Order, index: int, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return why machines cannot leave, or return to, a host: their target is closed or unreachable."""
    if order.stages[index].kind is StageKind.RETURN:
        return why_not_returned(draft, order)
    if order.action is Action.FAIL:
        return ()
    return placement.waiting_for_reachable_host(draft, order, affected)


def why_not_returned(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return why machines cannot return to a host: another cause closed it, or it is unreachable."""
    host = draft.hosts.get(order.host) if order.host else None
    if host is None or host.is_usable:
        return ()
    reason = f"is {host.state}: no machine returns to it"
    if host.state is HostState.OK and host.unreachable_since is not None:
        reason = f"cannot be reached since {format_time(host.unreachable_since)}: machines come back later"
    return (Waiting(what=f"host {host.name}", reason=reason, room=True),)


def effective_order(order: Order, index: int) -> Order:
    """Return an order without `together` for a stage of moves: machines still leave one by one."""
    together = order.terms.together and stages.starts_per_event(order.stages[index])
    return replace(order, terms=replace(order.terms, together="")) if together else order


def state_of(draft: Draft, order: Order, index: int) -> StageState:
    """Return the state of a stage of moves: announced with its first event, started with the first start."""
    stage, listed = order.stages[index], departures.stage_events(draft, order, index)
    if stage.started_at is not None or any(event.status is EventStatus.STARTED for event in listed):
        return StageState.STARTED
    return StageState.ANNOUNCED if listed else StageState.QUEUED


# Machines that arrive after the announcement


def announce_latecomers(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Announce machines that arrived after the stage was announced. The stage waits for them."""
    stage, late = order.stages[index], _admissible_latecomers(draft, order, index, policy)
    if not late:
        return order
    machines = {step.machine for step in late}
    for later in range(index + 1, len(order.stages)):
        planned = [step for step in order.stages[later].steps if step.machine in machines]
        order = move_prechecks.ask(draft, order, later, planned, policy)
    after = (step for stage in order.stages[index + 1 :] for step in stage.steps)
    late = tuple(step for step in after if step.machine in machines)
    if move_prechecks.waiting(draft, order, late, policy):
        return order
    notice, before = _notice(draft, order, index, late, policy), departures.stage_events(draft, order, index)
    armed = is_armed(before) if before else events.armed_at_once(notice)
    announced = events.announce(draft, order, index, late, notice, armed=armed)
    order = stages.put_stage(order, index, stages.with_joined(stage, late))
    arming.record_emergency(draft, order, announced, policy)
    order = stages.put_steps(order, index, placement.reserve_hosts(draft, order, late))
    return service.replan(draft, order)


def _admissible_latecomers(draft: Draft, order: Order, index: int, policy: Policy) -> tuple[Step, ...]:
    """Return the latecomers that may join: of each group one update domain, the lowest."""
    late: tuple[Step, ...] = ()
    before = departures.stage_events(draft, order, index)
    armed = is_armed(before) if before else None
    for step in sorted(latecomers(draft, order, index), key=lambda each: each.update_domain):
        joined = stages.with_joined(order.stages[index], late)
        alone = stages.fits(joined, step, draft.groups[step.group].policy)
        if (alone or order.terms.together) and not reasons.why_not_announced(
            draft, order, (*late, step), policy, armed=armed
        ):
            late += (step,)
    return late


def latecomers(draft: Draft, order: Order, index: int) -> tuple[Step, ...]:
    """Return the queued steps that could still join an announced stage."""
    stage = order.stages[index]
    return tuple(
        step
        for later in order.stages[index + 1 :]
        if later.kind is stage.kind
        for step in later.steps
        if order.terms.together or stages.fits(stage, step, draft.groups[step.group].policy)
    )


def is_armed(announced: Sequence[Event]) -> bool:
    """Return whether a stage is armed. Its events are armed together."""
    return any(event.armed for event in announced)


def latecomer_deadlock(order: Order, late: Sequence[Step], others: Iterable[Waiting]) -> str:
    """Explain why an armed stage that waits only for latecomers is withdrawn, or return "".

    A latecomer may wait for a group or for room that another armed stage holds, while that stage waits for
    a latecomer of its own. Neither would ever start. So the stage is announced again with all its machines.
    """
    if not any(why.group is not None or why.room for why in others):
        return ""
    names = machine_names(step.name for step in late)
    return f"{names} came to {order.host} and cannot be announced yet; announced again together"
