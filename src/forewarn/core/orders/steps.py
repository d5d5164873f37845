"""The life of a step: begun, done, failed; and what that does to its machine."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    SYNCHRONOUS_DRIVERS,
    EXTERNAL,
    SIMULATED,
    Action,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    StepState,
    Work,
)
from forewarn.core.catalogue import WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, RefusedHost, Step
from forewarn.core.time_formats import format_span
from forewarn.core.orders import bare_metal, placement

SETTLED = frozenset({MachineState.RUNNING, MachineState.STOPPED})
# No driver could do these to a machine that is on no host.
_NEEDING_A_HOST = frozenset({Work.FREEZE, Work.REBOOT, Work.REDEPLOY})


def begin(draft: Draft, order: Order, step: Step, *, to: HostName | None = None) -> Step:
    """Mark a step as begun, before any driver is asked to do it; `to` is where, if that is not chosen.

    What was done outside forewarn meanwhile is not done again: a second start could run a machine twice.
    """
    work = step.work
    machine = draft.machines[step.machine]
    to = to or order.terms.to
    if _is_reached(machine, step, to=to or step.target):
        unbegun = replace(step, begun_at=None, impact=None)
        return done(draft, order, unbegun, host=machine.host, note="done already, outside forewarn")
    if machine.host is None and work in _NEEDING_A_HOST:
        return fail(draft, order, step, why=_stopped(step))
    if work is Work.RECOVER:
        machine = take_down(draft, step)  # whether or not there is a host for it
    target = to
    if step.moves and order.placed_here and (to is None or order.terms.to):
        target = _kept(draft, step) or _choose(draft, order, step)
        if target is None:
            return fail(draft, order, step, why=nowhere(draft, order, step))
    elif order.driver == EXTERNAL and not order.terms.to:
        target = None  # others choose the host themselves, and report it when the machine has moved
    draft.put_machine(replace(machine, state=WORKS[work].during or machine.state, bound_for=target))
    draft.record(Kind.STEP_BEGUN, machine, order=order.id, by=order.by, reason=_said(order, step, target))
    return replace(
        step,
        state=StepState.RUNNING,
        target=target,
        begun_at=draft.now,
        look_at=ask_at(draft, order.driver),
        taken_up_at=None,
        unknown_at=None,
        mark="",
        progress=None,
        too_late=False,
        impact=None,
        why="",
    )


def _is_reached(machine: Machine, step: Step, *, to: HostName | None) -> bool:
    """Return whether a machine already is what a step would make of it."""
    if step.work is Work.EVICT:
        return machine.state is MachineState.STOPPED
    runs = machine.state is MachineState.RUNNING
    if step.work is Work.START:
        return runs
    return runs and step.moves and step.work in work_durations.MOVES.values() and machine.host == to


def _stopped(step: Step) -> str:
    way = "abandon this order, or start the machine outside forewarn and import that, then retry"
    return f'"{step.name}" is stopped: {way}'


def ask_at(draft: Draft, driver: str) -> datetime | None:
    """Return when a driver is to be asked at once; None if that is not a moment of service time."""
    return draft.now if driver in SYNCHRONOUS_DRIVERS else None


def send_elsewhere(draft: Draft, order: Order, step: Step) -> Step:
    """Choose another host for a machine that was refused by the chosen one; without any, the step fails."""
    machine = draft.put_machine(replace(draft.machines[step.machine], bound_for=None))
    target = _choose(draft, order, step)
    if target is None:
        return fail(draft, order, step, why=nowhere(draft, order, step))
    draft.put_machine(replace(machine, bound_for=target))
    said = f"{_said(order, step, target)}: {_refusals(step.refused[-1:])}"
    draft.record(Kind.STEP_BEGUN, machine, order=order.id, by=order.by, reason=said)
    return replace(step, target=target, look_at=ask_at(draft, order.driver))


def put_back(draft: Draft, step: Step) -> Step:
    """Let a step wait again whose driver has not begun it, for the chosen host cannot be reached."""
    machine = draft.machines[step.machine]
    match step.work:
        case Work.RECOVER:
            state = machine.state  # it is down before its turn
        case Work.START:
            state = MachineState.STOPPED
        case _:
            state = MachineState.RUNNING
    draft.put_machine(replace(machine, state=state, bound_for=None))
    return replace(tried_again(step), target=None, look_at=None)


def _kept(draft: Draft, step: Step) -> HostName | None:
    """Return the host that was reserved for a machine, unless that is no good any more."""
    return step.target if placement.is_reserved(draft, step) else None


def _choose(draft: Draft, order: Order, step: Step) -> HostName | None:
    machine = draft.machines[step.machine]
    if (itself := bare_metal.host_of(draft, machine)) is not None:
        return bare_metal.only_place(itself)
    # One whose host failed may come back there, if that has been restored since.
    own = None if step.work is Work.RECOVER else machine.host
    but = {own, *(refused.host for refused in step.refused)}
    first = step.precheck.target if step.precheck is not None else None
    for avoided in (step.failed_on, ()) if step.failed_on else ((),):
        target = placement.choose(draft, machine, but={*but, *avoided}, order=order, first=first)
        if target is not None:
            return target
    return None


def nowhere(draft: Draft, order: Order, step: Step) -> str:
    """Say that no host can take a machine, and why."""
    if order.terms.to is not None:
        there = placement.why_not_there(draft, draft.machines[step.machine], order.terms.to)
        why = "; ".join(filter(None, (_refusals(step.refused), there)))
        return f'"{step.name}" cannot go there: {why}; make that possible, then retry, or abandon the order'
    lack = placement.asked_in_vain(draft, draft.machines[step.machine])
    # It may come back where it was: disks of its own host are nowhere else.
    way = (
        "restore its host, or add or uncordon another" if step.work is Work.RECOVER else "add or uncordon one"
    )
    said = (_refusals(step.refused), lack, f"{way}, then retry")
    return f'no sound host can take "{step.name}": {"; ".join(filter(None, said))}'


def _refusals(refused: Iterable[RefusedHost]) -> str:
    return "; ".join(map(refusal, refused))


def refusal(refused: RefusedHost) -> str:
    """Say that a host cannot take a machine, and why."""
    return f"{refused.host} cannot take it, {refused.why}"


def unknown(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Note that it cannot be told how a step is doing: it goes on, for all that is known."""
    if step.unknown_at is None:  # once for each attempt, however often the connection comes and goes
        machine = draft.machines[step.machine]
        draft.record(Kind.STEP_UNKNOWN, machine, order=order.id, by=order.by, reason=f"{step.work}: {why}")
    return replace(step, unknown_at=step.unknown_at or draft.now, why=why)


def done(
    draft: Draft,
    order: Order,
    step: Step,
    *,
    host: HostName | None = None,
    by: str = "",
    note: str = "",
) -> Step:
    """Mark a step as carried out, and its machine as what it has become, on the host its driver names."""
    before = draft.machines[step.machine]
    after = draft.put_machine(replace(_become(draft, before, step.work, host or step.target), bound_for=None))
    said = _said(order, step, step.target if after.host == before.host else after.host)
    if step.target not in (None, after.host):
        said += f", not {step.target} as chosen"
    if step.impact is not None:
        said += f", away for {format_span(round(step.impact, 1))}{_announced(draft, order, step)}"
    # Last: of what a driver or a hook says nothing is shown to tenants, to the end of the text.
    said += f"; {note}" if note else ""
    draft.record(Kind.STEP_DONE, after, order=order.id, by=by or order.by, reason=said)
    _count_move(draft, order, step)
    return _ended(draft, step, StepState.DONE, why=note)


def _announced(draft: Draft, order: Order, step: Step) -> str:
    """Say how long guests were told that it would take, if they were."""
    for event in draft.events_of(order.id):
        named = any(resource.machine == step.machine for resource in event.resources)
        if named and event.started_at is not None and event.duration_seconds >= 0:
            return f", announced as {format_span(event.duration_seconds)}"
    return ""


def _count_move(draft: Draft, order: Order, step: Step) -> None:
    """Keep how long a real move took; who works outside may have done much else in the same time."""
    is_move = step.moves and step.work in work_durations.MOVES.values()
    if is_move and step.begun_at is not None and order.driver not in (SIMULATED, EXTERNAL):
        by_machine = work_durations.move_time(draft.machines[step.machine])
        draft.count_move(expected=by_machine, taken=draft.now - step.begun_at)


def fail(draft: Draft, order: Order, step: Step, *, why: str, by: str = "") -> Step:
    """Mark a step as failed; a person must retry or abandon its order."""
    machine = draft.put_machine(replace(draft.machines[step.machine], bound_for=None))
    draft.record(Kind.STEP_FAILED, machine, order=order.id, by=by or order.by, reason=f"{step.work}: {why}")
    return replace(_ended(draft, step, StepState.FAILED, why=why), failures=step.failures + 1)


def tried_again(step: Step) -> Step:
    """Let a step that failed wait for another attempt."""
    return replace(step, state=StepState.WAITING, attempt=step.attempt + 1, ended_at=None)


def left_running(draft: Draft, step: Step) -> None:
    """Take a machine to run where it is, for a while: what was tried has failed, and something else comes."""
    draft.put_machine(_without(draft, draft.machines[step.machine], step.work))


def abandon(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Make a step moot, and its machine what it is without it; one in other hands is what they make of it."""
    machine = draft.machines.get(step.machine)
    # One that waits to be tried again has left its machine as the attempt before did.
    begun = step.begun_at is not None
    changed = begun or step.work is Work.RECOVER  # which is down before its turn
    if machine is not None and changed and running_elsewhere(draft, step.machine, order) is None:
        there = _may_still_run(draft, order, machine)
        left = replace(machine, state=MachineState.RUNNING) if there else _without(draft, machine, step.work)
        draft.put_machine(replace(left, bound_for=None))
    return _ended(draft, step, StepState.MOOT, why=why)


def _may_still_run(draft: Draft, order: Order, machine: Machine) -> bool:
    """Return whether a machine may never have stopped: its host is well again, and was never fenced.

    On no host it could be started anywhere, and run twice.
    """
    host = draft.hosts.get(machine.host) if machine.host else None
    unfenced = order.action is Action.FAIL and not order.is_fenced
    return unfenced and host is not None and host.state is not HostState.FAILED


def _ended(draft: Draft, step: Step, state: StepState, *, why: str = "") -> Step:
    return replace(step, state=state, ended_at=draft.now, look_at=None, progress=None, why=why)


def _without(draft: Draft, machine: Machine, work: Work) -> Machine:
    """Take a machine in the middle of a step to run; one whose host failed under it is down."""
    if work is Work.RECOVER:
        return replace(machine, state=MachineState.STOPPED, host=_left_on(draft, machine))
    return machine if machine.state in SETTLED else replace(machine, state=MachineState.RUNNING)


def take_down(draft: Draft, step: Step) -> Machine:
    """Take a machine not to run whose host has failed under it."""
    return draft.put_machine(replace(draft.machines[step.machine], state=MachineState.RESTARTING))


def running_elsewhere(draft: Draft, machine: MachineId, order: Order) -> Order | None:
    """Find another order with a step of this machine under way."""
    for other in draft.orders_of(machine):
        if other.id != order.id and other.open and _is_running(other, machine):
            return other
    return None


def all_over(order: Order) -> bool:
    """Return whether all that an order does is done, to machines and hosts."""
    return all(step.state in (StepState.DONE, StepState.MOOT) for step in order.all_steps)


def _is_running(order: Order, machine: MachineId) -> bool:
    return any(step.machine == machine and step.state is StepState.RUNNING for step in order.steps)


def _become(draft: Draft, machine: Machine, work: Work, target: HostName | None) -> Machine:
    facts = WORKS[work]
    host = _left_on(draft, machine) if facts.unloads else target or machine.host
    return replace(machine, state=facts.after, host=host)


def _left_on(draft: Draft, machine: Machine) -> HostName | None:
    """Return the host of a machine that is down: none, but for one that is its own host."""
    return None if bare_metal.host_of(draft, machine) is None else machine.host


def _said(order: Order, step: Step, target: HostName | None) -> str:
    said = f"{step.work} to {target}" if target else f"{step.work}"
    simulated = order.simulated or (
        order.driver == SIMULATED and step.moves
    )  # others restart with their host
    return f"{said}, simulated" if simulated else said
