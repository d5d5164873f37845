"""Whether the machines of a wave are well again: what pauses a rollout though no step has failed.

The time they have for that counts from when their work is over, or should be: so no limit is too short for
the work itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from forewarn.core.model.order import Order, Step
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.waiting import Waiting
from forewarn.core.moments import format_span
from forewarn.core.policy import Policy
from forewarn.core.words import MachineId, StageKind, StepState


def silent(rollout: Rollout, orders: Iterable[Order], seen: Mapping[MachineId, datetime]) -> tuple[Step, ...]:
    """Find the machines that polled before their work and have not since; `seen` has the newest polls."""
    if not rollout.terms.require_poll or rollout.aborting:
        return ()
    return tuple(
        step
        for step in _steps(rollout, orders, StepState.DONE)
        if step.ended_at is not None and step.machine in seen and seen[step.machine] <= step.ended_at
    )


def unwell(
    rollout: Rollout, orders: Iterable[Order], quiet: Iterable[Step], *, now: datetime, policy: Policy
) -> dict[MachineId, Waiting]:
    """Return the machines that have not become healthy in time."""
    limit = rollout.terms.health
    span, work = format_span(limit), expected_work(rollout, policy)
    slow = {
        step.machine: Waiting(
            what=step.name, reason=f"is not healthy {span} after its work should have been over"
        )
        for step in _steps(rollout, orders, StepState.RUNNING)
        if step.begun_at is not None and step.begun_at + work + limit <= now
    }
    mute = {
        step.machine: Waiting(what=step.name, reason=f"has not polled again {span} after its work")
        for step in quiet
        if step.ended_at is not None and step.ended_at + limit <= now
    }
    return slow | mute


def look_at(
    rollout: Rollout, orders: Iterable[Order], quiet: Iterable[Step], *, now: datetime, policy: Policy
) -> datetime | None:
    """Return when the next machine should be healthy: one that is worked on, or one that must poll again."""
    begun = (step.begun_at for step in _steps(rollout, orders, StepState.RUNNING))
    over = (moment + expected_work(rollout, policy) for moment in begun if moment is not None)
    moments = (*over, *(step.ended_at for step in quiet if step.ended_at is not None))
    limits = (moment + rollout.terms.health for moment in moments)
    return min((moment for moment in limits if moment > now), default=None)


def expected_work(rollout: Rollout, policy: Policy) -> timedelta:
    """Return how long a stage of a host is expected to take."""
    return rollout.terms.expected or policy.expected_work


def _steps(rollout: Rollout, orders: Iterable[Order], state: StepState) -> Iterator[Step]:
    excused = frozenset(rollout.excused)
    for step in (step for order in orders for step in _watched(order, state)):
        if step.state is state and step.machine not in excused:
            yield step


def _watched(order: Order, state: StepState) -> Iterator[Step]:
    """Return the steps that are watched here: how long a host is away is watched by its own order."""
    with_host = state is StepState.RUNNING
    for stage in order.stages:
        if not (with_host and stage.kind is StageKind.HOST):
            yield from stage.steps
