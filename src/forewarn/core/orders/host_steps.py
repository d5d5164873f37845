"""State changes of a host step: begun, done, failed or moot."""

from collections.abc import Callable
from dataclasses import replace

from forewarn.core.basic_types import HostTask, Kind, StepState
from forewarn.core.draft import Draft
from forewarn.core.model.order import HostStep, Order
from forewarn.core.orders import steps


def find(order: Order, task: HostTask) -> HostStep | None:
    """Return the order's step for a task."""
    return next((step for step in order.host_steps if step.task is task), None)


def put(order: Order, step: HostStep) -> Order:
    """Replace the step of the same task, or append the step."""
    if find(order, step.task) is None:
        return replace(order, host_steps=(*order.host_steps, step))
    return with_steps(order, lambda known: step if known.task is step.task else known)


def with_steps(order: Order, change: Callable[[HostStep], HostStep]) -> Order:
    """Apply a function to every host step of an order."""
    return replace(order, host_steps=tuple(map(change, order.host_steps)))


def begin(draft: Draft, order: Order, step: HostStep) -> HostStep:
    """Mark a step as running, before the driver or hook is called."""
    steps.record(draft, Kind.STEP_BEGUN, order, step)
    return replace(steps.running(draft, step, step.driver), back_by=None)  # each attempt gets the full time


def done(draft: Draft, order: Order, step: HostStep, *, by: str = "") -> HostStep:
    """Mark a step as done."""
    steps.record(draft, Kind.STEP_DONE, order, step, by=by)
    return steps.ended(draft, step, StepState.DONE)


def fail(
    draft: Draft, order: Order, step: HostStep, *, why: str, by: str = "", again: bool = False
) -> HostStep:
    """Mark a step as failed, or queue the next attempt if `again` is set."""
    steps.record(
        draft, Kind.STEP_FAILED, order, step, by=by, why=f"{why}; it is tried again" if again else why
    )
    failed = steps.ended(draft, step, StepState.FAILED, why=why)
    return steps.tried_again(failed) if again else failed


def abandon(draft: Draft, step: HostStep, *, why: str) -> HostStep:
    """Mark a step as moot unless it is finished."""
    return step if step.state in steps.FINISHED else steps.ended(draft, step, StepState.MOOT, why=why)
