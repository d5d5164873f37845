"""What drivers report of steps: under way, done, failed."""

from dataclasses import replace
from datetime import datetime

from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import departures, lifecycle, stages, steps
from forewarn.core.policy import Policy
from forewarn.core.words import EXTERNAL, HostName, HostState, MachineId, OrderId, StepState


def report_done(draft: Draft, order: OrderId, *, by: str, policy: Policy) -> Order:
    """Mark the running steps of an order done, as an external driver reports."""
    mine = _under_way_outside(draft, order)
    for step in mine.steps:
        if step.state is StepState.RUNNING:
            step_done(draft, order, step.machine, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def report_failed(draft: Draft, order: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the running steps of an order failed, as an external driver reports."""
    mine = _under_way_outside(draft, order)
    for step in mine.steps:
        if step.state is StepState.RUNNING:
            step_failed(draft, order, step.machine, why=why, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def heartbeat(draft: Draft, order: OrderId, *, policy: Policy) -> Order:
    """Note that an external driver is at work on an order: from then on, silence counts."""
    mine = _under_way_outside(draft, order)
    look_at = draft.now + (mine.terms.heartbeat or policy.external_silence)
    for step in mine.steps:
        if step.state is StepState.RUNNING:
            step_running(draft, order, step.machine, look_at=look_at, taken_up=True)
    return lifecycle.advance(draft, order, policy=policy)


def _under_way_outside(draft: Draft, order: OrderId) -> Order:
    mine = draft.orders[order]
    if mine.driver != EXTERNAL:
        raise Conflict(f"order {order} is carried out by driver {mine.driver}: nobody else has a say")
    if not any(step.state is StepState.RUNNING for step in mine.steps):
        raise Conflict(f"order {order} is {mine.state}: none of its work is under way")
    return mine


def gone_silent(draft: Draft, order: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the running steps of an order failed that somebody outside has taken up."""
    for step in draft.orders[order].steps:
        if is_awaited(step):
            step_failed(draft, order, step.machine, why=why, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def is_awaited(step: Step) -> bool:
    """Return whether somebody outside is at a step, and must be heard of."""
    return step.state is StepState.RUNNING and step.taken_up_at is not None


def step_running(
    draft: Draft, order: OrderId, machine: MachineId, *, look_at: datetime | None, taken_up: bool = False
) -> None:
    """Note that a step is under way, and when to ask its driver again."""
    if (step := _running_step(draft, order, machine)) is not None:
        since = step.taken_up_at or (draft.now if taken_up else None)
        _put(draft, order, replace(step, look_at=look_at, taken_up_at=since))


def step_done(draft: Draft, order: OrderId, machine: MachineId, *, by: str = "") -> None:
    """Mark a step done, as its driver reports."""
    step = _running_step(draft, order, machine)
    if step is None:
        return
    if step.target is not None and not _can_arrive(draft, step.target):
        why = f"host {step.target} was lost before it arrived: retry, and another one is chosen"
        step_failed(draft, order, machine, why=why)
        return
    before = draft.machines[machine]
    _put(draft, order, steps.done(draft, draft.orders[order], step, by=by))
    host = draft.machines[machine].host
    if host != before.host:
        departures.leave_host(draft, before, why=f"moved to {host}" if host else "evicted", keep=order)
        departures.wake_whole_host(draft, before.host)
    draft.wake(departures.touching(draft, machine))


def step_failed(draft: Draft, order: OrderId, machine: MachineId, *, why: str, by: str = "") -> None:
    """Mark a step failed, as its driver reports."""
    if (step := _running_step(draft, order, machine)) is not None:
        _put(draft, order, steps.fail(draft, draft.orders[order], step, why=why, by=by))
        draft.wake(departures.touching(draft, machine))


def _can_arrive(draft: Draft, target: HostName) -> bool:
    host = draft.hosts.get(target)
    return host is not None and host.state is not HostState.FAILED


def _running_step(draft: Draft, order: OrderId, machine: MachineId) -> Step | None:
    """Find the step; None if it is not running any more: the machine left meanwhile."""
    mine = (step for step in draft.orders[order].steps if step.machine == machine)
    return next((step for step in mine if step.state is StepState.RUNNING), None)


def _put(draft: Draft, order: OrderId, reported: Step) -> None:
    """Replace the running step of a machine."""

    def put(step: Step) -> Step:
        running = step.machine == reported.machine and step.state is StepState.RUNNING
        return reported if running else step

    draft.put_order(stages.with_steps(draft.orders[order], put))
