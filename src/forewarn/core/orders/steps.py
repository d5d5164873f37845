"""The life of a step: begun, done, failed; and what that does to its machine."""

from dataclasses import replace

from forewarn.core.catalogue import WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import placement
from forewarn.core.policy import work_of
from forewarn.core.words import EXTERNAL, HostName, Kind, MachineId, MachineState, StepState, Work

SETTLED = frozenset({MachineState.RUNNING, MachineState.STOPPED})


def begin(draft: Draft, order: Order, step: Step) -> Step:
    """Mark a step as begun, before any driver is asked to do it."""
    work = work_of(order)
    machine = draft.machines[step.machine]
    if work is Work.RECOVER:
        machine = draft.put_machine(_down(machine))  # whether or not there is a host for it
    # An external driver chooses the host itself, and reports it when the machine has moved.
    placed_here = WORKS[work].moves and order.driver != EXTERNAL
    # One whose host failed may come back there, if that has been restored since.
    own = None if work is Work.RECOVER else machine.host
    target = placement.choose(draft, machine, but=own) if placed_here else None
    if placed_here and target is None:
        why = f'no sound host can take "{machine.name}": add or uncordon one, then retry'
        return fail(draft, order, step, why=why)
    draft.put_machine(replace(machine, state=WORKS[work].during or machine.state, bound_for=target))
    draft.record(Kind.STEP_BEGUN, machine, order=order.id, by=order.by, reason=_said(order, target))
    return replace(
        step,
        state=StepState.RUNNING,
        target=target,
        begun_at=draft.now,
        look_at=draft.now,
        taken_up_at=None,
        why="",
    )


def done(draft: Draft, order: Order, step: Step, *, by: str = "") -> Step:
    """Mark a step as carried out, and its machine as what it has become."""
    before = draft.machines[step.machine]
    after = draft.put_machine(replace(_become(before, work_of(order), step.target), bound_for=None))
    draft.record(Kind.STEP_DONE, after, order=order.id, by=by or order.by, reason=_said(order, step.target))
    return replace(step, state=StepState.DONE, ended_at=draft.now, look_at=None)


def fail(draft: Draft, order: Order, step: Step, *, why: str, by: str = "") -> Step:
    """Mark a step as failed; a person must retry or abandon its order."""
    machine = draft.put_machine(replace(draft.machines[step.machine], bound_for=None))
    draft.record(Kind.STEP_FAILED, machine, order=order.id, by=by or order.by, reason=f"{order.work}: {why}")
    return replace(step, state=StepState.FAILED, ended_at=draft.now, look_at=None, why=why)


def abandon(draft: Draft, order: Order, step: Step, *, why: str) -> Step:
    """Make a step moot, and its machine what it is without it."""
    machine = draft.machines.get(step.machine)
    if machine is not None and step.state in (StepState.RUNNING, StepState.FAILED):
        draft.put_machine(replace(_without(machine, work_of(order)), bound_for=None))
    return replace(step, state=StepState.MOOT, ended_at=draft.now, look_at=None, why=why)


def _without(machine: Machine, work: Work) -> Machine:
    """Take a machine in the middle of a step to run; one whose host failed under it is down."""
    if work is Work.RECOVER:
        return replace(machine, state=MachineState.STOPPED, host=None)
    return machine if machine.state in SETTLED else replace(machine, state=MachineState.RUNNING)


def _down(machine: Machine) -> Machine:
    return replace(machine, state=MachineState.RESTARTING)


def running_elsewhere(draft: Draft, machine: MachineId, order: Order) -> Order | None:
    """Find another order with a step of this machine under way."""
    for other in draft.orders.values():
        if other.id != order.id and other.open and _is_running(other, machine):
            return other
    return None


def _is_running(order: Order, machine: MachineId) -> bool:
    return any(step.machine == machine and step.state is StepState.RUNNING for step in order.steps)


def _become(machine: Machine, work: Work, target: HostName | None) -> Machine:
    facts = WORKS[work]
    host = None if facts.unloads else target or machine.host
    return replace(machine, state=facts.after, host=host)


def _said(order: Order, target: HostName | None) -> str:
    said = f"{order.work} to {target}" if target else f"{order.work}"
    return f"{said}, simulated" if order.simulated else said
