"""Work on a host itself, in stages: machines that can leave do so first, the others restart with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    GroupName,
    MachineState,
    Mobility,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, OrderTerms, Stage, Step
from forewarn.core.orders import lost_hosts, reasons, stages
from forewarn.core.policy import Policy


def with_mode(terms: OrderTerms, host: Host) -> OrderTerms:
    """Return the terms of work on a host: it is done to the whole of it, and bare metal cannot be emptied."""
    mode = ServiceMode.IN_PLACE if host.bare_metal else terms.mode or ServiceMode.EVACUATE
    returning = terms.returning and mode is ServiceMode.EVACUATE
    return replace(terms, mode=mode, returning=returning, whole=not terms.together)


def replan(draft: Draft, order: Order) -> Order:
    """Lay out what is left to do; machines may have come and gone meanwhile."""
    there = tuple(stages.concerned(draft, order))
    laid_out = [*_evacuation(draft, order, there)]
    laid_out += _host_stages(order, there, laid_out)
    laid_out += _return(draft, order, laid_out)
    return replace(order, stages=tuple(laid_out))


def host_stage(order: Order) -> Stage | None:
    """Return the stage in which the host itself is worked on; None before an order is laid out."""
    return next((stage for stage in order.stages if stage.kind is StageKind.HOST), None)


def staying(order: Order) -> tuple[Step, ...]:
    """Return the machines that restart with the host, also those that came after it was announced."""
    return tuple(step for stage in order.stages if stage.kind is StageKind.HOST for step in stage.steps)


def _known(order: Order, kind: StageKind) -> Stage | None:
    return next((stage for stage in order.stages if stage.kind is kind), None)


# Machines that leave


def _evacuation(draft: Draft, order: Order, there: Sequence[Machine]) -> Iterable[Stage]:
    """Lay out who leaves: it ends with the announcement of the work on the host itself."""
    if order.terms.mode is not ServiceMode.EVACUATE:
        return
    stage = _known(order, StageKind.EVACUATE)
    if stage is None:
        stage = Stage(state=StageState.QUEUED, kind=StageKind.EVACUATE, steps=())
    host = host_stage(order)
    if host is None or host.state is StageState.QUEUED:
        movable = [machine for machine in there if machine.mobility is not Mobility.NONE]
        stage = _laid_out(draft, order, stage, movable)
    yield stage


def _return(draft: Draft, order: Order, before: Sequence[Stage]) -> Iterable[Stage]:
    """Lay out, once the host is done, who comes back: those that left, and are still elsewhere."""
    worked_on = any(each.kind is StageKind.HOST and each.state is StageState.DONE for each in before)
    if not order.terms.returning or not worked_on:
        return
    stage = _known(order, StageKind.RETURN)
    if stage is not None and stage.state is StageState.DONE:
        yield stage
        return
    left = (step for each in before if each.kind is StageKind.EVACUATE for step in each.steps)
    gone = (draft.machines.get(step.machine) for step in left if step.state is StepState.DONE)
    leaving = stages.leaving(draft)
    away = [
        machine
        for machine in gone
        if machine is not None and machine.host not in (None, order.host)
        if machine.state is not MachineState.STOPPED and machine.id not in leaving
        if not lost_hosts.is_away(draft, machine)  # which must be fenced first
    ]
    known = stage or Stage(state=StageState.QUEUED, kind=StageKind.RETURN, steps=())
    back = _laid_out(draft, order, known, away)
    if back.steps:
        yield back


def _laid_out(draft: Draft, order: Order, stage: Stage, machines: Sequence[Machine]) -> Stage:
    """Give each machine that is to move a step, unless it has one; whoever was told keeps what it was told.

    A stage that was done goes on if there is something to do again.
    """
    told = _told(draft, order, stage)
    kept = {step.machine: step for step in stage.steps if _is_kept(step, told)}
    tried = _tried(order, besides=stage)
    asked = {step.machine: step for step in stage.steps}
    waiting = {step.machine: step for step in stage.steps if step.state is StepState.WAITING}
    for machine in machines:
        known = kept.get(machine.id)
        if known is None or known.state is StepState.MOOT:
            attempt = max(tried.get(machine.id, 0), 0 if known is None else known.attempt) + 1
            planned = replace(_move(machine), attempt=attempt)
            if (before := waiting.get(machine.id)) is not None:
                planned = replace(planned, target=before.target, withdrawals=before.withdrawals)
            kept[machine.id] = stages.carried_over(planned, asked)
    steps = tuple(kept.values())
    over = stage.state is StageState.DONE and not stages.settled(steps)
    begun = StageState.QUEUED if stage.started_at is None else StageState.STARTED
    return replace(stage, steps=steps, state=begun if over else stage.state)


def _told(draft: Draft, order: Order, stage: Stage) -> set[str]:
    if stage not in order.stages:
        return set()
    index = order.stages.index(stage)
    mine = (event for event in draft.events_of(order.id) if event.stage == index)
    return {resource.machine for event in mine for resource in event.resources}


def _is_kept(step: Step, told: set[str]) -> bool:
    """Return whether something has come of a step already."""
    return step.machine in told or step.begun_at is not None or step.state is StepState.FAILED


def _tried(order: Order, *, besides: Stage) -> dict[str, int]:
    """Return the last attempts that were begun in other stages: no two of a machine are the same."""
    others = (stage for stage in order.stages if stage.kind is not besides.kind)
    begun = (step for stage in others for step in stage.steps if step.begun_at is not None)
    return {step.machine: step.attempt for step in begun}


def _move(machine: Machine) -> Step:
    return stages.step_of(machine, work_durations.MOVES[machine.mobility], moves=True)


# Machines that stay


def _host_stages(order: Order, there: Sequence[Machine], before: Sequence[Stage]) -> Iterable[Stage]:
    """Lay out who restarts with the host: who cannot leave it, or has come back to it.

    Who comes after the announcement waits behind it, to be told as well; who comes while the host is worked
    on is not told.
    """
    settled = {
        step.machine: step.state is StepState.DONE
        for stage in before
        for step in stage.steps
        if step.state is not StepState.MOOT
    }
    stay = [machine for machine in there if settled.get(machine.id, True)]
    known = host_stage(order)
    if known is None or known.state is StageState.QUEUED:
        yield _restarting(order, stay)
        return
    yield known
    told = {step.machine for step in known.steps if step.state is not StepState.MOOT}
    late = [machine for machine in stay if machine.id not in told]
    if known.state is StageState.ANNOUNCED and late:
        yield _restarting(order, late)


def _restarting(order: Order, machines: Iterable[Machine]) -> Stage:
    stage = Stage(state=StageState.QUEUED, kind=StageKind.HOST, steps=())
    tried = _tried(order, besides=stage)
    steps = (
        replace(stages.step_of(machine, Work.REBOOT), attempt=tried.get(machine.id, 0) + 1)
        for machine in machines
    )
    return replace(stage, steps=tuple(steps))


# What can never be


def check_possible(draft: Draft, order: Order, policy: Policy) -> None:
    """Refuse at once what could only wait for ever, or would break rule 4, and name the machines."""
    laid_out = replan(draft, order)
    _check_domains(draft, order, staying(laid_out))
    for stage in laid_out.stages:
        for share in shares(stage.steps) if stages.is_apart(stage) else (stage.steps,):
            reasons.check_possible(draft, order, share, policy)


def shares(steps: Iterable[Step]) -> list[tuple[Step, ...]]:
    """Return what is told apart: the machines of one update domain of a group that go the same way."""
    found: dict[tuple[int, str, str], list[Step]] = {}
    for step in steps:
        found.setdefault((step.update_domain, step.group, step.work), []).append(step)
    return [tuple(found[key]) for key in sorted(found)]


def _check_domains(draft: Draft, order: Order, staying: Sequence[Step]) -> None:
    if order.terms.together:
        return
    domains: dict[str, dict[int, list[str]]] = {}
    for step in staying:
        domains.setdefault(step.group, {}).setdefault(step.update_domain, []).append(step.name)
    divided = {
        group: its
        for group, its in domains.items()
        if len(its) > 1 and not draft.groups[GroupName(group)].policy.gang
    }
    if not divided:
        return
    said = "; ".join(_carried(group, its) for group, its in sorted(divided.items()))
    can = "" if order.terms.mode is ServiceMode.EVACUATE else "evacuate it (host service --evacuate), "
    raise Conflict(
        f"{order.host} carries {said}: they would restart with it together. Move some away, {can}treat "
        "machines in parts (a gate with --one-by-one), or say why they may be disturbed together "
        '(--together REASON; "together")'
    )


def _carried(group: str, domains: Mapping[int, Sequence[str]]) -> str:
    *most, last = sorted(domains)
    which = f"{', '.join(map(str, most))} and {last}"
    names = ", ".join(f"{', '.join(domains[each])} of domain {each}" for each in sorted(domains))
    return f"update domains {which} of group {group} ({names})"
