"""Plan work on a host itself: machines that can leave do so first, the others restart with the host."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from forewarn.core.admission import announcing, work_durations
from forewarn.core.basic_types import (
    Action,
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
from forewarn.core.orders import lost_hosts, reasons, stages, steps
from forewarn.core.policy import Policy


def with_mode(terms: OrderTerms, host: Host) -> OrderTerms:
    """Return the terms with a mode. Bare metal cannot be evacuated."""
    mode = ServiceMode.IN_PLACE if host.bare_metal else terms.mode or ServiceMode.EVACUATE
    returning = terms.returning and mode is ServiceMode.EVACUATE
    return replace(terms, mode=mode, returning=returning, whole=not terms.together)


def replan(draft: Draft, order: Order) -> Order:
    """Plan the unannounced stages of an order again: machines may have come and gone."""
    if order.action is not Action.SERVICE:
        return stages.replan(draft, order)
    there = tuple(stages.affected_machines(draft, order))
    planned = [*_evacuation(draft, order, there)]
    planned += _host_stages(order, there, planned)
    planned += _return(draft, order, planned)
    return replace(order, stages=tuple(planned))


def stage_of(order: Order, kind: StageKind) -> Stage | None:
    """Return the first stage of a kind."""
    return next((stage for stage in order.stages if stage.kind is kind), None)


def staying(order: Order) -> tuple[Step, ...]:
    """Return the steps of machines that restart with the host, including late arrivals."""
    return tuple(step for stage in order.stages if stage.kind is StageKind.HOST for step in stage.steps)


# Machines that leave


def _evacuation(draft: Draft, order: Order, there: Sequence[Machine]) -> Iterable[Stage]:
    """Plan the moves off the host. The plan is final once the work on the host is announced."""
    if order.terms.mode is not ServiceMode.EVACUATE:
        return
    stage = stage_of(order, StageKind.EVACUATE)
    if stage is None:
        stage = Stage(state=StageState.QUEUED, kind=StageKind.EVACUATE, steps=())
    host = stage_of(order, StageKind.HOST)
    if host is None or host.state is StageState.QUEUED:
        movable = [machine for machine in there if machine.mobility is not Mobility.NONE]
        stage = _with_moves(draft, order, stage, movable)
    yield stage


def _return(draft: Draft, order: Order, before: Sequence[Stage]) -> Iterable[Stage]:
    """After the work on the host, plan the return of the machines that left and are still elsewhere."""
    worked_on = any(each.kind is StageKind.HOST and each.state is StageState.DONE for each in before)
    if not order.terms.returning or not worked_on:
        return
    stage = stage_of(order, StageKind.RETURN)
    if stage is not None and stage.state is StageState.DONE:
        yield stage
        return
    left = (step for each in before if each.kind is StageKind.EVACUATE for step in each.steps)
    moved = (draft.machines.get(step.machine) for step in left if step.state is StepState.DONE)
    leaving = stages.leaving_machines(draft)
    away = [
        machine
        for machine in moved
        if machine is not None and machine.host not in (None, order.host)
        if machine.state is not MachineState.STOPPED and machine.id not in leaving
        if not lost_hosts.is_away(draft, machine)  # its host must be fenced first
    ]
    known = stage or Stage(state=StageState.QUEUED, kind=StageKind.RETURN, steps=())
    back = _with_moves(draft, order, known, away)
    if back.steps:
        yield back


def _with_moves(draft: Draft, order: Order, stage: Stage, machines: Sequence[Machine]) -> Stage:
    """Give each machine a step that moves it, but keep announced, begun and failed steps as they are.

    A stage that was done starts again if it gets new steps.
    """
    announced: set[str] = set()
    if stage in order.stages:
        index = order.stages.index(stage)
        listed = (event for event in draft.events_of(order.id) if event.stage == index)
        announced = {resource.machine for event in listed for resource in event.resources}
    known = {step.machine: step for step in stage.steps}
    kept = {
        step.machine: step
        for step in stage.steps
        if step.machine in announced or step.begun_at is not None or step.state is StepState.FAILED
    }
    tried = _last_attempts(order, besides=stage)
    for machine in machines:
        before = kept.get(machine.id)
        if before is None or before.state is StepState.MOOT:
            attempt = max(tried.get(machine.id, 0), 0 if before is None else before.attempt) + 1
            move = stages.step_of(machine, work_durations.MOVES[machine.mobility], moves=True)
            move = replace(move, attempt=attempt)
            if (last := known.get(machine.id)) is not None and last.state is StepState.WAITING:
                move = replace(move, target=last.target, withdrawals=last.withdrawals)
            kept[machine.id] = stages.keep_driver_answer(move, known)
    planned = tuple(kept.values())
    again = stage.state is StageState.DONE and not steps.all_finished(planned)
    begun = StageState.QUEUED if stage.started_at is None else StageState.STARTED
    return replace(stage, steps=planned, state=begun if again else stage.state)


def _last_attempts(order: Order, *, besides: Stage) -> dict[str, int]:
    """Return the last attempt of each machine in other stages: a machine never repeats an attempt number."""
    others = (stage for stage in order.stages if stage.kind is not besides.kind)
    begun = (step for stage in others for step in stage.steps if step.begun_at is not None)
    return {step.machine: step.attempt for step in begun}


# Machines that stay


def _host_stages(order: Order, there: Sequence[Machine], before: Sequence[Stage]) -> Iterable[Stage]:
    """Plan the restart, with the host, of the machines that cannot leave it or have returned to it.

    A machine that arrives after the announcement waits in a second stage, to be announced too. One that
    arrives while the host is worked on is not announced.
    """
    moved = {
        step.machine: step.state is StepState.DONE
        for stage in before
        for step in stage.steps
        if step.state is not StepState.MOOT
    }
    stay = [machine for machine in there if moved.get(machine.id, True)]
    known = stage_of(order, StageKind.HOST)
    if known is None or known.state is StageState.QUEUED:
        yield _restarting(order, stay)
        return
    yield known
    announced = {step.machine for step in known.steps if step.state is not StepState.MOOT}
    late = [machine for machine in stay if machine.id not in announced]
    if known.state is StageState.ANNOUNCED and late:
        yield _restarting(order, late)


def _restarting(order: Order, machines: Iterable[Machine]) -> Stage:
    stage = Stage(state=StageState.QUEUED, kind=StageKind.HOST, steps=())
    tried = _last_attempts(order, besides=stage)
    restarts = (
        replace(stages.step_of(machine, Work.REBOOT), attempt=tried.get(machine.id, 0) + 1)
        for machine in machines
    )
    return replace(stage, steps=tuple(restarts))


# Checks of a new order


def check_possible(draft: Draft, order: Order, policy: Policy) -> None:
    """Refuse work that could never be announced, or that would break rule 4; name the machines."""
    planned = replan(draft, order)
    _check_domains(draft, order, staying(planned))
    for stage in planned.stages:
        for share in shares(stage.steps) if stages.starts_per_event(stage) else (stage.steps,):
            reasons.check_possible(draft, order, share, policy)


def shares(affected: Iterable[Step]) -> list[tuple[Step, ...]]:
    """Group steps into shares: the machines of one update domain of a group that move in the same way."""
    found: dict[tuple[int, str, str], list[Step]] = {}
    for step in affected:
        found.setdefault((step.update_domain, step.group, step.work), []).append(step)
    return [tuple(found[key]) for key in sorted(found)]


def _check_domains(draft: Draft, order: Order, staying: Sequence[Step]) -> None:
    if order.terms.together:
        return
    domains: dict[str, dict[int, list[str]]] = {}
    for step in staying:
        domains.setdefault(step.group, {}).setdefault(step.update_domain, []).append(step.name)
    said = "; ".join(
        _describe_domains(group, its)
        for group, its in sorted(domains.items())
        if len(its) > 1 and not draft.groups[GroupName(group)].policy.gang
    )
    if not said:
        return
    can = "" if order.terms.mode is ServiceMode.EVACUATE else "evacuate it (host service --evacuate), "
    raise Conflict(
        f"{order.host} carries {said}: they would restart with it together. Move some away, {can}treat "
        "machines in parts (a gate with --one-by-one), or say why they may be disturbed together "
        '(--together REASON; "together")'
    )


def _describe_domains(group: str, domains: Mapping[int, Sequence[str]]) -> str:
    names = ", ".join(f"{', '.join(domains[each])} of domain {each}" for each in sorted(domains))
    return f"update domains {announcing.listing(sorted(domains))} of group {group} ({names})"
