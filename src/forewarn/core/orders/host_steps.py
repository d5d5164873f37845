"""The life of a step on a host itself: begun, done, failed, called off; whoever does it."""

from collections.abc import Callable
from dataclasses import replace

from forewarn.core.basic_types import SIMULATED, HostTask, Kind, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.order import HostStep, Order
from forewarn.core.orders import steps
from forewarn.core.redaction import driver_named

SETTLED = frozenset({StepState.DONE, StepState.MOOT})


def find(order: Order, task: HostTask) -> HostStep | None:
    """Find the step of a task."""
    return next((step for step in order.host_steps if step.task is task), None)


def put(order: Order, step: HostStep) -> Order:
    """Replace the step of a task, or add it after the others."""
    if find(order, step.task) is None:
        return replace(order, host_steps=(*order.host_steps, step))
    return with_steps(order, lambda known: step if known.task is step.task else known)


def with_steps(order: Order, change: Callable[[HostStep], HostStep]) -> Order:
    """Return an order with every step on its host changed."""
    return replace(order, host_steps=tuple(map(change, order.host_steps)))


def begin(draft: Draft, order: Order, step: HostStep) -> HostStep:
    """Mark a step as begun, before anybody is asked to do it."""
    _record(draft, Kind.STEP_BEGUN, order, step)
    return replace(
        step,
        state=StepState.RUNNING,
        begun_at=draft.now,
        look_at=steps.ask_at(draft, step.driver),
        taken_up_at=None,
        unknown_at=None,
        mark="",
        progress=None,
        ended_at=None,
        why="",
        back_by=None,  # each attempt has its own time
    )


def unknown(draft: Draft, order: Order, step: HostStep, *, why: str) -> HostStep:
    """Note that it cannot be told how a step is doing: it goes on, for all that is known."""
    if step.unknown_at is None:  # once for each attempt, as of machines
        _record(draft, Kind.STEP_UNKNOWN, order, step, why=why)
    return replace(step, unknown_at=step.unknown_at or draft.now, why=why)


def done(draft: Draft, order: Order, step: HostStep, *, by: str = "") -> HostStep:
    """Mark a step as carried out."""
    _record(draft, Kind.STEP_DONE, order, step, by=by)
    return _ended(draft, step, StepState.DONE)


def fail(
    draft: Draft, order: Order, step: HostStep, *, why: str, by: str = "", again: bool = False
) -> HostStep:
    """Mark a step as failed; a person must retry or abandon its order, unless it is tried again by itself."""
    said = f"{why}; it is tried again" if again else why
    _record(draft, Kind.STEP_FAILED, order, step, by=by, why=said)
    failed = _ended(draft, step, StepState.FAILED, why=why)
    return tried_again(failed) if again else failed


def tried_again(step: HostStep) -> HostStep:
    """Let a step that failed wait for another attempt."""
    if step.state is not StepState.FAILED:
        return step
    return replace(step, state=StepState.WAITING, attempt=step.attempt + 1, ended_at=None)


def abandon(draft: Draft, step: HostStep, *, why: str) -> HostStep:
    """Make a step moot that is not done."""
    return step if step.state in SETTLED else _ended(draft, step, StepState.MOOT, why=why)


def _ended(draft: Draft, step: HostStep, state: StepState, *, why: str = "") -> HostStep:
    return replace(step, state=state, ended_at=draft.now, look_at=None, progress=None, why=why)


def _record(draft: Draft, kind: Kind, order: Order, step: HostStep, *, by: str = "", why: str = "") -> None:
    said = (
        f"{step.task} of the host by {driver_named(step.driver)}"
        if step.driver != SIMULATED
        else f"{step.task} of the host, simulated"
    )
    reason = f"{said}: {why}" if why else said
    draft.record(kind, order, by=by or order.by, reason=reason)
