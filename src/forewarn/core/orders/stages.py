"""Split an order into stages: no stage disturbs two update domains of one group."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import is_

from forewarn.core.basic_types import (
    Action,
    GroupName,
    MachineId,
    MachineState,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.orders import host_failures
from forewarn.core.policy import work_of


def replan(draft: Draft, order: Order) -> Order:
    """Split the unannounced rest of an order again: machines may have come and gone."""
    fixed = tuple(stage for stage in order.stages if stage.state is not StageState.QUEUED)
    handled = {step.machine for stage in fixed for step in stage.steps if step.state is not StepState.MOOT}
    # Work on the whole host is done once: machines that arrive after it has started are left alone.
    begun = order.terms.undivided and any(stage.state is not StageState.ANNOUNCED for stage in fixed)
    there = () if begun else affected_machines(draft, order)
    left = [machine for machine in there if machine.id not in handled]
    work = work_of(order)
    if left and (order.action is Action.MOVE or order.terms.together):
        # A live move is a Freeze, yet it moves its machine.
        moves = True if order.action is Action.MOVE else None
        steps = tuple(step_of(machine, work, moves=moves) for machine in left)
        queued: tuple[Stage, ...] = (Stage(state=StageState.QUEUED, steps=steps),)
    else:
        queued = cut(left, work, draft.groups)
    queued = tuple(_with_next_attempts(stage, fixed) for stage in queued)
    known = {step.machine: step for stage in order.stages if stage not in fixed for step in stage.steps}
    if any(map(_has_driver_answer, known.values())):
        queued = tuple(_with_steps(stage, lambda step: keep_driver_answer(step, known)) for stage in queued)
    return replace(order, stages=fixed + queued)


def keep_driver_answer(step: Step, known: Mapping[MachineId, Step]) -> Step:
    """Return a newly planned step with the driver's answers about the same step of the last plan."""
    before = known.get(step.machine)
    if (
        before is None
        or not _has_driver_answer(before)
        or step.work not in (before.work, before.lowered_from)
    ):
        return step
    return replace(
        before,
        name=step.name,
        group=step.group,
        update_domain=step.update_domain,
        target=step.target,
        attempt=max(step.attempt, before.attempt),
    )


def _has_driver_answer(step: Step) -> bool:
    """Return whether the driver was asked about a step before its announcement."""
    asked = step.precheck is not None or bool(step.refused) or step.lowered_from is not None
    asked = asked or step.again_at is not None
    return asked and step.begun_at is None and step.state in (StepState.WAITING, StepState.FAILED)


def _with_next_attempts(stage: Stage, before: Iterable[Stage]) -> Stage:
    """Number attempts after those of earlier stages: no two attempts of a machine share a number."""
    tried = {
        step.machine: step.attempt for past in before for step in past.steps if step.begun_at is not None
    }
    steps = (replace(step, attempt=tried.get(step.machine, 0) + 1) for step in stage.steps)
    return replace(stage, steps=tuple(steps)) if tried else stage


def cut(machines: Iterable[Machine], work: Work, groups: Mapping[GroupName, Group]) -> tuple[Stage, ...]:
    """Split machines into stages by update domain, the lowest of each group first.

    A group that permits several domains together goes into the first stage.
    """
    domains: dict[GroupName, Counter[int]] = defaultdict(Counter)
    machines = tuple(machines)
    for machine in machines:
        domains[machine.group][machine.update_domain] += 1
    turn = {
        (group, domain): 0 if groups[group].policy.lets_together(its.total(), work) else index
        for group, its in domains.items()
        for index, domain in enumerate(sorted(its))
    }
    stages: dict[int, list[Step]] = defaultdict(list)
    for machine in machines:
        stages[turn[machine.group, machine.update_domain]].append(step_of(machine, work))
    return tuple(Stage(state=StageState.QUEUED, steps=tuple(stages[index])) for index in sorted(stages))


def step_of(machine: Machine, work: Work, *, moves: bool | None = None) -> Step:
    """Return a new step for a machine. `moves` overrides whether the work moves it.

    A recovery goes to the target of the move that the failure interrupted: the machine may be there already.
    """
    return Step(
        machine=machine.id,
        name=machine.name,
        group=machine.group,
        update_domain=machine.update_domain,
        work=work,
        moves=WORKS[work].moves if moves is None else moves,
        target=machine.bound_for if work is Work.RECOVER else None,
    )


def starts_per_event(stage: Stage) -> bool:
    """Return whether each event of a stage starts by itself: its machines move, a few at a time."""
    return stage.kind in (StageKind.EVACUATE, StageKind.RETURN)


def active(order: Order) -> tuple[int, ...]:
    """Return the indexes of the stages that are announced or started."""
    live = (StageState.ANNOUNCED, StageState.STARTED)
    return tuple(index for index, stage in enumerate(order.stages) if stage.state in live)


def put_stage(order: Order, index: int, stage: Stage) -> Order:
    """Replace one stage."""
    return replace(order, stages=(*order.stages[:index], stage, *order.stages[index + 1 :]))


def put_state(order: Order, index: int, state: StageState, *, now: datetime | None = None) -> Order:
    """Replace the state of one stage. `now` becomes its start time if it has none."""
    stage = order.stages[index]
    started_at = stage.started_at or (now if state is StageState.STARTED else None)
    return put_stage(order, index, replace(stage, state=state, started_at=started_at))


def put_steps(order: Order, index: int, steps: Mapping[MachineId, Step]) -> Order:
    """Replace the steps of some machines in one stage."""
    if not steps:
        return order
    stage = order.stages[index]
    put = tuple(steps.get(old.machine, old) for old in stage.steps)
    return put_stage(order, index, replace(stage, steps=put))


def with_steps(order: Order, change: Callable[[Step], Step]) -> Order:
    """Apply a function to every machine step of an order."""
    return replace(order, stages=tuple(_with_steps(stage, change) for stage in order.stages))


def _with_steps(stage: Stage, change: Callable[[Step], Step]) -> Stage:
    steps = tuple(map(change, stage.steps))
    return stage if all(map(is_, steps, stage.steps)) else replace(stage, steps=steps)


def reset_withdrawals(order: Order) -> Order:
    """Reset the counts of withdrawn announcements."""
    order = replace(order, withdrawals=0)
    return with_steps(order, lambda step: replace(step, withdrawals=0) if step.withdrawals else step)


def with_joined(stage: Stage, steps: Iterable[Step]) -> Stage:
    """Add steps to a stage; they replace older steps of the same machines."""
    steps = tuple(steps)
    joined = {step.machine for step in steps}
    kept = tuple(step for step in stage.steps if step.machine not in joined)
    return replace(stage, steps=kept + steps)


def fits(stage: Stage, step: Step, policy: GroupPolicy) -> bool:
    """Return whether a step can join a stage without a second update domain of its group."""
    same_group = [
        each for each in stage.steps if each.group == step.group and each.state is not StepState.MOOT
    ]
    alike = all(each.update_domain == step.update_domain for each in same_group)
    return alike or policy.lets_together(len(same_group) + 1, step.work)


def affected_machines(draft: Draft, order: Order) -> Iterable[Machine]:
    """Return the machines that an order works on, as the fleet is now."""
    if order.host is None:
        machine = draft.machines.get(order.machine) if order.machine else None
        return () if machine is None else (machine,)
    there = (each for each in draft.machines_on(order.host) if each.state is not MachineState.STOPPED)
    if order.action is Action.FAIL:
        return host_failures.machines_to_recover(draft, order, there)
    gone = leaving_machines(draft)
    return (machine for machine in there if machine.id not in gone)


def leaving_machines(draft: Draft) -> set[MachineId | None]:
    """Return the machines with an open order to evict or terminate them."""
    return {other.machine for other in draft.orders.values() if other.open and ACTIONS[other.action].leaves}
