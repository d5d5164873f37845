"""How an order is cut into stages: no stage disturbs two update domains of one group."""

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

SETTLED = frozenset({StepState.DONE, StepState.MOOT})


def replan(draft: Draft, order: Order) -> Order:
    """Cut anew what an order has not announced yet; machines may have come and gone meanwhile."""
    fixed = tuple(stage for stage in order.stages if stage.state is not StageState.QUEUED)
    handled = {step.machine for stage in fixed for step in stage.steps if step.state is not StepState.MOOT}
    # What is done to the whole host is done once: machines that come while it is at work are not told of it.
    begun = order.terms.undivided and any(stage.state is not StageState.ANNOUNCED for stage in fixed)
    there = () if begun else concerned(draft, order)
    left = [machine for machine in there if machine.id not in handled]
    work = work_of(order)
    if order.action is Action.MOVE:
        queued = one_move(left, work)
    else:
        queued = in_one(left, work) if order.terms.together else cut(left, work, draft.groups)
    queued = tuple(_counted_on(stage, fixed) for stage in queued)
    known = {step.machine: step for stage in order.stages if stage not in fixed for step in stage.steps}
    said = {machine for machine, step in known.items() if _is_said(step)}
    if said:
        queued = tuple(_with_steps(stage, lambda step: carried_over(step, known)) for stage in queued)
    return replace(order, stages=fixed + queued)


def carried_over(step: Step, known: Mapping[MachineId, Step]) -> Step:
    """Return a step that is laid out anew with what its driver has said of it before."""
    before = known.get(step.machine)
    if before is None or not _is_said(before) or step.work not in (before.work, before.lowered_from):
        return step
    attempt = max(step.attempt, before.attempt)
    return replace(
        before,
        name=step.name,
        group=step.group,
        update_domain=step.update_domain,
        target=step.target,
        attempt=attempt,
    )


def _is_said(step: Step) -> bool:
    """Return whether a driver was asked about a step before it is announced."""
    asked = step.precheck is not None or bool(step.refused) or step.lowered_from is not None
    asked = asked or step.again_at is not None
    return asked and step.begun_at is None and step.state in (StepState.WAITING, StepState.FAILED)


def _counted_on(stage: Stage, before: Iterable[Stage]) -> Stage:
    """Let a machine that comes back be another attempt than the one that it has left: no two are the same."""
    tried = {
        step.machine: step.attempt for past in before for step in past.steps if step.begun_at is not None
    }
    steps = (replace(step, attempt=tried.get(step.machine, 0) + 1) for step in stage.steps)
    return replace(stage, steps=tuple(steps)) if tried else stage


def in_one(machines: Iterable[Machine], work: Work) -> tuple[Stage, ...]:
    """Put all machines into one stage, whatever their update domains are."""
    steps = tuple(step_of(machine, work) for machine in machines)
    return (Stage(state=StageState.QUEUED, steps=steps),) if steps else ()


def one_move(machines: Iterable[Machine], work: Work) -> tuple[Stage, ...]:
    """Make the stage in which a machine moves by itself, also if it goes live."""
    steps = tuple(step_of(machine, work, moves=True) for machine in machines)
    return (Stage(state=StageState.QUEUED, steps=steps),) if steps else ()


def cut(machines: Iterable[Machine], work: Work, groups: Mapping[GroupName, Group]) -> tuple[Stage, ...]:
    """Cut machines into stages, each group's lowest update domain first; together where a group lets them."""
    domains: dict[GroupName, Counter[int]] = defaultdict(Counter)
    machines = tuple(machines)
    for machine in machines:
        domains[machine.group][machine.update_domain] += 1
    apart = {
        group: not groups[group].policy.lets_together(its.total(), work) for group, its in domains.items()
    }
    turn = {
        (group, domain): index if apart[group] else 0
        for group, its in domains.items()
        for index, domain in enumerate(sorted(its))
    }
    stages: dict[int, list[Step]] = defaultdict(list)
    for machine in machines:
        stages[turn[machine.group, machine.update_domain]].append(step_of(machine, work))
    return tuple(Stage(state=StageState.QUEUED, steps=tuple(stages[index])) for index in sorted(stages))


def step_of(machine: Machine, work: Work, *, moves: bool | None = None) -> Step:
    """Make a machine's share of a stage; it moves if its work does, unless that is said.

    One whose host failed while it was moved comes back where it was to go, for it may be there already.
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


def is_apart(stage: Stage) -> bool:
    """Return whether the shares of a stage start by themselves: its machines move, a few at a time."""
    return stage.kind in (StageKind.EVACUATE, StageKind.RETURN)


def active(order: Order) -> tuple[int, ...]:
    """Return the indexes of the stages that are announced or started."""
    live = (StageState.ANNOUNCED, StageState.STARTED)
    return tuple(index for index, stage in enumerate(order.stages) if stage.state in live)


def put_stage(order: Order, index: int, stage: Stage) -> Order:
    """Replace one stage."""
    return replace(order, stages=(*order.stages[:index], stage, *order.stages[index + 1 :]))


def put_state(order: Order, index: int, state: StageState, *, now: datetime | None = None) -> Order:
    """Replace the state of one stage; `now`: when it starts, unless it has started before."""
    stage = order.stages[index]
    started_at = stage.started_at or (now if state is StageState.STARTED else None)
    return put_stage(order, index, replace(stage, state=state, started_at=started_at))


def put_steps(order: Order, index: int, steps: Mapping[MachineId, Step]) -> Order:
    """Replace the steps of some machines in a stage."""
    if not steps:
        return order
    stage = order.stages[index]
    put = tuple(steps.get(old.machine, old) for old in stage.steps)
    return put_stage(order, index, replace(stage, steps=put))


def with_steps(order: Order, change: Callable[[Step], Step]) -> Order:
    """Return an order with every step changed."""
    return replace(order, stages=tuple(_with_steps(stage, change) for stage in order.stages))


def _with_steps(stage: Stage, change: Callable[[Step], Step]) -> Stage:
    steps = tuple(map(change, stage.steps))
    return stage if all(map(is_, steps, stage.steps)) else replace(stage, steps=steps)


def counted_again(order: Order) -> Order:
    """Count the announcements of an order that came to nothing from none again."""
    order = replace(order, withdrawals=0)
    return with_steps(order, lambda step: replace(step, withdrawals=0) if step.withdrawals else step)


def settled(steps: Iterable[Step]) -> bool:
    """Return whether all of these steps are done or moot."""
    return all(step.state in SETTLED for step in steps)


def with_joining(stage: Stage, steps: Iterable[Step]) -> Stage:
    """Return a stage that machines have joined; one that was there before is there anew."""
    steps = tuple(steps)
    joined = {step.machine for step in steps}
    kept = tuple(step for step in stage.steps if step.machine not in joined)
    return replace(stage, steps=kept + steps)


def fits(stage: Stage, step: Step, policy: GroupPolicy) -> bool:
    """Return whether a machine can join a stage: without a second update domain, where these count."""
    mine = [each for each in stage.steps if each.group == step.group and each.state is not StepState.MOOT]
    alike = all(each.update_domain == step.update_domain for each in mine)
    return alike or policy.lets_together(len(mine) + 1, step.work)


def concerned(draft: Draft, order: Order) -> Iterable[Machine]:
    """Return the machines that an order is about now."""
    if order.host is None:
        machine = draft.machines.get(order.machine) if order.machine else None
        return () if machine is None else (machine,)
    there = (each for each in draft.machines_on(order.host) if each.state is not MachineState.STOPPED)
    if order.action is Action.FAIL:
        return host_failures.hit(draft, order, there)
    gone = leaving(draft)
    return (machine for machine in there if machine.id not in gone)


def leaving(draft: Draft) -> set[MachineId | None]:
    """Return the machines that are about to be evicted or terminated."""
    return {other.machine for other in draft.orders.values() if other.open and ACTIONS[other.action].leaves}
