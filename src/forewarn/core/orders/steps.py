"""State changes of a machine's step, and what they do to the machine."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    EXTERNAL,
    SIMULATED,
    SYNCHRONOUS_DRIVERS,
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
from forewarn.core.model.order import HostStep, Order, RefusedHost, Step
from forewarn.core.orders import bare_metal, placement
from forewarn.core.redaction import driver_named
from forewarn.core.time_formats import format_span

# Machine states in which no step is under way.
SETTLED = frozenset({MachineState.RUNNING, MachineState.STOPPED})
# States of a step that never runs again.
FINISHED = frozenset({StepState.DONE, StepState.MOOT})
# A driver cannot do these to a machine that is on no host.
_NEEDING_A_HOST = frozenset({Work.FREEZE, Work.REBOOT, Work.REDEPLOY})

AnyStep = TypeVar("AnyStep", Step, HostStep)


def all_finished(steps: Iterable[Step | HostStep]) -> bool:
    """Return whether all of these steps are done or moot."""
    return all(step.state in FINISHED for step in steps)


def begin(draft: Draft, order: Order, step: Step, *, to: HostName | None = None) -> Step:
    """Mark a step as running, before its driver is called. `to` fixes the target host.

    A step whose result already holds is done at once: starting a machine again could run it twice.
    """
    work = step.work
    machine = draft.machines[step.machine]
    to = to or order.terms.to
    if _is_reached(machine, step, to=to or step.target):
        unbegun = replace(step, begun_at=None, impact=None)
        return done(draft, order, unbegun, host=machine.host, note="done already, outside forewarn")
    if machine.host is None and work in _NEEDING_A_HOST:
        way = "abandon this order, or start the machine outside forewarn and import that, then retry"
        return fail(draft, order, step, why=f'"{step.name}" is stopped: {way}')
    if work is Work.RECOVER:
        machine = take_down(draft, step)  # even if no host can take it
    target = to
    if step.moves and order.placed_by_forewarn and (to is None or order.terms.to):
        target = step.target if placement.is_reserved(draft, step) else _choose(draft, order, step)
        if target is None:
            return fail(draft, order, step, why=why_no_host(draft, order, step))
    elif order.driver == EXTERNAL and not order.terms.to:
        target = None  # the external program chooses the host, and reports it when the machine has moved
    draft.put_machine(replace(machine, state=WORKS[work].during or machine.state, bound_for=target))
    draft.record(Kind.STEP_BEGUN, machine, order=order.id, by=order.by, reason=_describe(order, step, target))
    return replace(running(draft, step, order.driver), target=target, too_late=False, impact=None)


def running(draft: Draft, step: AnyStep, driver: str) -> AnyStep:
    """Return a step at the start of an attempt."""
    return replace(
        step,
        state=StepState.RUNNING,
        begun_at=draft.now,
        look_at=check_at(draft, driver),
        taken_up_at=None,
        unknown_at=None,
        mark="",
        progress=None,
        ended_at=None,
        why="",
    )


def _is_reached(machine: Machine, step: Step, *, to: HostName | None) -> bool:
    """Return whether a machine is already in the state that a step leads to."""
    if step.work is Work.EVICT:
        return machine.state is MachineState.STOPPED
    runs = machine.state is MachineState.RUNNING
    if step.work is Work.START:
        return runs
    return runs and step.moves and step.work in work_durations.MOVES.values() and machine.host == to


def check_at(draft: Draft, driver: str) -> datetime | None:
    """Return when the driver must be asked, or None if real time decides that."""
    return draft.now if driver in SYNCHRONOUS_DRIVERS else None


def send_elsewhere(draft: Draft, order: Order, step: Step) -> Step:
    """Choose another host for a machine that its target refused. If there is none, the step fails."""
    machine = draft.put_machine(replace(draft.machines[step.machine], bound_for=None))
    target = _choose(draft, order, step)
    if target is None:
        return fail(draft, order, step, why=why_no_host(draft, order, step))
    draft.put_machine(replace(machine, bound_for=target))
    reason = f"{_describe(order, step, target)}: {refusal(step.refused[-1])}"
    draft.record(Kind.STEP_BEGUN, machine, order=order.id, by=order.by, reason=reason)
    return replace(step, target=target, look_at=check_at(draft, order.driver))


def put_back(draft: Draft, step: Step) -> Step:
    """Return a step to waiting that its driver did not begin because the target cannot be reached."""
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


def _choose(draft: Draft, order: Order, step: Step) -> HostName | None:
    machine = draft.machines[step.machine]
    if (itself := bare_metal.host_of(draft, machine)) is not None:
        return itself.name if itself.state is HostState.OK else None
    # A recovered machine may return to its own host if that was restored in the meantime.
    own = None if step.work is Work.RECOVER else machine.host
    excluded = {own, *(refused.host for refused in step.refused)}
    first = step.precheck.target if step.precheck is not None else None
    for avoided in (step.failed_on, ()) if step.failed_on else ((),):
        target = placement.choose(draft, machine, excluded={*excluded, *avoided}, order=order, first=first)
        if target is not None:
            return target
    return None


def why_no_host(draft: Draft, order: Order, step: Step) -> str:
    """Explain why no host can take a machine."""
    refusals = "; ".join(map(refusal, step.refused))
    machine = draft.machines[step.machine]
    if order.terms.to is not None:
        why = "; ".join(filter(None, (refusals, placement.why_unsuitable(draft, machine, order.terms.to))))
        return f'"{step.name}" cannot go there: {why}; make that possible, then retry, or abandon the order'
    # A recovered machine may need its own host: the disks of a host are nowhere else.
    way = (
        "restore its host, or add or uncordon another" if step.work is Work.RECOVER else "add or uncordon one"
    )
    said = (refusals, placement.unmet_requirement(draft, machine), f"{way}, then retry")
    return f'no sound host can take "{step.name}": {"; ".join(filter(None, said))}'


def refusal(refused: RefusedHost) -> str:
    """Explain that a host cannot take a machine."""
    return f"{refused.host} cannot take it, {refused.why}"


def record(
    draft: Draft, kind: Kind, order: Order, step: Step | HostStep, *, by: str = "", why: str = ""
) -> None:
    """Record a change of a step."""
    if isinstance(step, HostStep):
        actor = ", simulated" if step.driver == SIMULATED else f" by {driver_named(step.driver)}"
        reason = f"{step.task} of the host{actor}" + (f": {why}" if why else "")
        draft.record(kind, order, by=by or order.by, reason=reason)
    else:
        machine, reason = draft.machines[step.machine], f"{step.work}: {why}"
        draft.record(kind, machine, order=order.id, by=by or order.by, reason=reason)


def done(
    draft: Draft,
    order: Order,
    step: Step,
    *,
    host: HostName | None = None,
    by: str = "",
    note: str = "",
) -> Step:
    """Mark a step as done and update its machine. `host` is where the driver reports it to be."""
    before = draft.machines[step.machine]
    work = WORKS[step.work]
    now_on = _host_when_stopped(draft, before) if work.unloads else host or step.target or before.host
    after = draft.put_machine(replace(before, state=work.after, host=now_on, bound_for=None))
    reason = _describe(order, step, step.target if after.host == before.host else after.host)
    if step.target not in (None, after.host):
        reason += f", not {step.target} as chosen"
    if step.impact is not None:
        reason += f", away for {format_span(round(step.impact, 1))}{_announced_duration(draft, order, step)}"
    # The note comes last: tenants do not see the text from a driver or a hook, up to the end of the reason.
    reason += f"; {note}" if note else ""
    draft.record(Kind.STEP_DONE, after, order=order.id, by=by or order.by, reason=reason)
    is_move = step.moves and step.work in work_durations.MOVES.values()
    # The time that an external program reports may include other work.
    if is_move and step.begun_at is not None and order.driver not in (SIMULATED, EXTERNAL):
        expected = work_durations.move_time(after)
        draft.count_move(expected=expected, taken=draft.now - step.begun_at)
    return ended(draft, step, StepState.DONE, why=note)


def _announced_duration(draft: Draft, order: Order, step: Step) -> str:
    """Return the duration that the event of a machine announced, if it did."""
    for event in draft.events_of(order.id):
        named = any(resource.machine == step.machine for resource in event.resources)
        if named and event.started_at is not None and event.duration_seconds >= 0:
            return f", announced as {format_span(event.duration_seconds)}"
    return ""


def fail(draft: Draft, order: Order, step: Step, *, why: str, by: str = "") -> Step:
    """Mark a step as failed. A person must retry or abandon its order."""
    draft.put_machine(replace(draft.machines[step.machine], bound_for=None))
    record(draft, Kind.STEP_FAILED, order, step, by=by, why=why)
    return replace(ended(draft, step, StepState.FAILED, why=why), failures=step.failures + 1)


def tried_again(step: AnyStep) -> AnyStep:
    """Return a failed step to waiting, with the next attempt number."""
    return replace(step, state=StepState.WAITING, attempt=step.attempt + 1, ended_at=None)


def leave_running(draft: Draft, step: Step) -> None:
    """Mark the machine of a failed move as running where it is. Another attempt follows later."""
    draft.put_machine(_without(draft, draft.machines[step.machine], step.work))


def abandon(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Make a step moot, and restore its machine unless another order works on it."""
    machine = draft.machines.get(step.machine)
    # A step that waits for another attempt has left its machine as the last attempt did.
    # The machine of a recovery is down even before its turn.
    changed = step.begun_at is not None or step.work is Work.RECOVER
    if machine is not None and changed and running_elsewhere(draft, step.machine, order) is None:
        there = _may_still_run(draft, order, machine)
        left = replace(machine, state=MachineState.RUNNING) if there else _without(draft, machine, step.work)
        draft.put_machine(replace(left, bound_for=None))
    return ended(draft, step, StepState.MOOT, why=why)


def _may_still_run(draft: Draft, order: Order, machine: Machine) -> bool:
    """Return whether a machine may never have stopped: its host was restored and never fenced.

    If it was marked as stopped, another order could start it a second time.
    """
    host = draft.hosts.get(machine.host) if machine.host else None
    unfenced = order.action is Action.FAIL and not order.is_fenced
    return unfenced and host is not None and host.state is not HostState.FAILED


def ended(draft: Draft, step: AnyStep, state: StepState, *, why: str = "") -> AnyStep:
    """Return a step in a state in which it does not run."""
    return replace(step, state=state, ended_at=draft.now, look_at=None, progress=None, why=why)


def _without(draft: Draft, machine: Machine, work: Work) -> Machine:
    """Return a machine without its unfinished step: stopped if it was being recovered, otherwise running."""
    if work is Work.RECOVER:
        return replace(machine, state=MachineState.STOPPED, host=_host_when_stopped(draft, machine))
    return machine if machine.state in SETTLED else replace(machine, state=MachineState.RUNNING)


def take_down(draft: Draft, step: Step) -> Machine:
    """Mark the machine of a failed host as down."""
    return draft.put_machine(replace(draft.machines[step.machine], state=MachineState.RESTARTING))


def running_elsewhere(draft: Draft, machine: MachineId, order: Order) -> Order | None:
    """Return another open order with a running step for this machine."""
    for other in draft.orders_of(machine):
        if other.id != order.id and other.open and any(step.machine == machine for step in other.running):
            return other
    return None


def _host_when_stopped(draft: Draft, machine: Machine) -> HostName | None:
    """Return the host of a stopped machine: none, except for bare metal."""
    return None if bare_metal.host_of(draft, machine) is None else machine.host


def _describe(order: Order, step: Step, target: HostName | None) -> str:
    said = f"{step.work} to {target}" if target else f"{step.work}"
    # A simulated step that does not move its machine takes place with the real work on the host.
    simulated = order.simulated or (order.driver == SIMULATED and step.moves)
    return f"{said}, simulated" if simulated else said
