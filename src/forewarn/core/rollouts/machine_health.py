"""Whether machines are well again after their work: what pauses a rollout though no step has failed.

A machine is not well while it does not poll again, where that is asked for, and while its hypervisor says
that it is off, as an import has found it.

The time they have for that counts from when their work is over, or should be: so no limit is too short for
the work itself.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import OUTSIDE_FOREWARN, Kind, MachineId, StageKind, StepState
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import Order, Step
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.time_formats import format_span
from forewarn.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwellMachine:
    """A machine that is not well yet after its work, and how that is known."""

    step: Step
    reason: str


def silent(
    rollout: Rollout, orders: Iterable[Order], seen: Mapping[MachineId, datetime]
) -> tuple[UnwellMachine, ...]:
    """Find the machines that polled before their work and have not since; `seen` has the newest polls."""
    if not rollout.terms.require_poll or rollout.aborting:
        return ()
    return tuple(
        UnwellMachine(step=step, reason="has not polled again")
        for step in _steps(rollout, orders, StepState.DONE)
        if step.ended_at is not None and step.machine in seen and seen[step.machine] <= step.ended_at
    )


def recent(rollout: Rollout, *, now: datetime) -> tuple[Wave, ...]:
    """Return the waves whose machines may still take their time to be well."""
    limit = now - rollout.terms.health
    return tuple(wave for wave in rollout.begun if wave.ended_at is None or wave.ended_at >= limit)


def treated(rollout: Rollout, orders: Iterable[Order]) -> tuple[Step, ...]:
    """Return the steps that are done, of machines that no person has excused."""
    return () if rollout.aborting else tuple(_steps(rollout, orders, StepState.DONE))


def off(steps: Iterable[Step], stopped: Collection[MachineId]) -> tuple[UnwellMachine, ...]:
    """Return the machines that others have stopped since their work."""
    reason = "is off, as its hypervisor says,"
    return tuple(UnwellMachine(step=step, reason=reason) for step in steps if step.machine in stopped)


def is_stopped_by_others(records: Iterable[Record]) -> bool:
    """Return whether the newest records of a stopped machine say that forewarn has not stopped it itself."""
    for record in records:
        if record.kind == Kind.STEP_DONE:
            return False
        if record.reason.endswith(OUTSIDE_FOREWARN):
            return True
    return False


def unwell(
    rollout: Rollout,
    orders: Iterable[Order],
    quiet: Iterable[UnwellMachine],
    *,
    now: datetime,
    policy: Policy,
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
    late = {
        each.step.machine: Waiting(what=each.step.name, reason=f"{each.reason} {span} after its work")
        for each in quiet
        if each.step.ended_at is not None and each.step.ended_at + limit <= now
    }
    return slow | late


def look_at(
    rollout: Rollout,
    orders: Iterable[Order],
    quiet: Iterable[UnwellMachine],
    *,
    now: datetime,
    policy: Policy,
) -> datetime | None:
    """Return when the next machine should be healthy: one that is worked on, or one that is not well yet."""
    begun = (step.begun_at for step in _steps(rollout, orders, StepState.RUNNING))
    over = (moment + expected_work(rollout, policy) for moment in begun if moment is not None)
    moments = (*over, *(each.step.ended_at for each in quiet if each.step.ended_at is not None))
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
