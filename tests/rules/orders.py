"""Stages, steps, and orders that wind down (rules 4, 5 and 8)."""

from collections.abc import Iterator

from forewarn.core.basic_types import (
    HINTS,
    Action,
    EventStatus,
    GroupName,
    HostTask,
    MachineId,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.order import Order
from tests.rules.change import MOVING, Change


def stages_start_completely(change: Change) -> Iterator[str]:
    """Rule 5: all events of a stage start together, unless its machines only move."""
    states: dict[tuple[str, int], set[EventStatus]] = {}
    for event in change.after.events.values():
        kind = change.after.orders[event.order].stages[event.stage].kind if event.type not in HINTS else None
        if kind in MOVING:
            continue
        states.setdefault((event.order, event.stage), set()).add(event.status)
    for (order, stage), found in states.items():
        if len(found) > 1:
            yield f"stage {stage} of {order} has only some of its events started"


def stages_have_one_domain_of_a_group(change: Change) -> Iterator[str]:
    """Rule 4: no announced stage disturbs two update domains of one group, except with `together`."""
    for order in change.after.orders.values():
        for stage in order.stages:
            if stage.state is StageState.QUEUED or order.terms.together or stage.kind in MOVING:
                continue
            domains: dict[GroupName, set[int]] = {}
            told = [step for step in stage.steps if step.state is not StepState.MOOT]
            for step in told:
                domains.setdefault(step.group, set()).add(step.update_domain)
            for group in (group for group, its in domains.items() if len(its) > 1):
                policy, mine = change.after.groups[group].policy, [x for x in told if x.group == group]
                frozen = all(step.work is Work.FREEZE for step in mine)
                if not policy.gang and not (frozen and len(mine) <= policy.freezes_at_once):
                    yield f"a stage of {order.id} disturbs two update domains of {group}"


def machines_are_free_when_their_stage_starts(change: Change) -> Iterator[str]:
    """Rule 5: an event does not start while another order works on one of its machines."""
    busy = {
        step.machine: order.id
        for order in change.before.orders.values()
        for step in order.steps
        if step.state is StepState.RUNNING and step in change.after.orders.get(order.id, order).steps
    }
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.status is not EventStatus.STARTED or (known and known.status is EventStatus.STARTED):
            continue
        # The event of a failed host starts at once.
        if change.after.orders[event.order].action is Action.FAIL:
            continue
        for named in event.resources:
            if busy.get(named.machine, event.order) != event.order:
                yield f"{event.id} started while {busy[named.machine]} worked on {named.name}"


def machines_have_one_step_at_a_time(change: Change) -> Iterator[str]:
    """Rule 5: no machine has two running steps."""
    busy: dict[MachineId, Order] = {}
    for order in change.after.orders.values():
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            if step.machine in busy:
                yield f"{busy[step.machine].id} and {order.id} work on {step.name}"
            busy[step.machine] = order


def finished_steps_stay_finished(change: Change) -> Iterator[str]:
    """Rule 8: a finished step never runs again."""
    for id_, order in change.before.orders.items():
        after = change.after.orders.get(id_)
        if after is None:
            continue
        for index, stage in enumerate(order.stages):
            kept = set(after.stages[index].steps) if index < len(after.stages) else set()
            for step in stage.steps:
                if step.state is StepState.DONE and step not in kept:
                    yield f"{step.name} of {id_} was done and has changed"


def attempts_are_begun_once(change: Change) -> Iterator[str]:
    """Rule 8: a step runs again only as a later attempt, and a running step does not begin again."""
    for id_, order in change.after.orders.items():
        known = change.before.orders.get(id_)
        before = [step for step in known.steps if step.begun_at is not None] if known else []
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            for past in (each for each in before if each.machine == step.machine):
                still_runs = past.state is StepState.RUNNING and past.begun_at == step.begun_at
                # A step that waits for its retry already has the number of the next attempt.
                last = past.attempt - (past.state is StepState.WAITING)
                if step.attempt <= last and not (still_runs and step.attempt == last):
                    yield f"attempt {step.attempt} of {step.name} in {id_} runs after attempt {last}"


# These steps follow work that has begun: they undo it, or check whether the host can be used again.
_FOLLOWING = (HostTask.AFTER, HostTask.HEALTH, HostTask.UNCORDON)


def nothing_begins_in_an_order_that_winds_down(change: Change) -> Iterator[str]:
    """An order that winds down announces nothing, and none of its steps begins."""
    for id_, order in change.after.orders.items():
        known = change.before.orders.get(id_)
        if not order.terms.winding_down or known is None:
            continue
        for event in change.after.events.values():
            if event.order == id_ and event.id not in change.before.events:
                yield f"{event.id} was announced for {id_}, which is winding down"
        for what in sorted(_begun(order) - _begun(known)):
            yield f"{what} of {id_} began, which is winding down"


def _begun(order: Order) -> set[str]:
    moves = {
        f"{stage.kind} of {step.name}"
        for stage in order.stages
        for step in stage.steps
        if step.begun_at is not None
    }
    on_host = (step for step in order.host_steps if step.begun_at is not None)
    return moves | {f"{step.task} of the host" for step in on_host if step.task not in _FOLLOWING}
