"""Check that machines are healthy after their work. If not, the rollout pauses although no step has failed.

A machine is unhealthy while it does not poll again (if the rollout requires that), and while an import from
its hypervisor reports that it is off.

The time limit counts from the end of the work, or from its expected end, so it need not include the work.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import OUTSIDE_FOREWARN, Kind, MachineId, StageKind, StepState
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import Order, Step
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.policy import Policy
from forewarn.core.time_formats import format_span


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwellMachine:
    """A machine that is not healthy yet after its work, and the evidence."""

    step: Step
    reason: str


def not_polling(
    rollout: Rollout, orders: Iterable[Order], seen: Mapping[MachineId, datetime]
) -> tuple[UnwellMachine, ...]:
    """Return the machines that polled before their work and not since. `seen` has their last polls."""
    if not rollout.terms.require_poll or rollout.aborting:
        return ()
    return tuple(
        UnwellMachine(step=step, reason="has not polled again")
        for step in _steps(rollout, orders, StepState.DONE)
        if step.ended_at is not None and step.machine in seen and seen[step.machine] <= step.ended_at
    )


def watched_waves(rollout: Rollout, *, now: datetime) -> tuple[Wave, ...]:
    """Return the waves whose machines are still within the time limit."""
    limit = now - rollout.terms.health
    return tuple(wave for wave in rollout.begun if wave.ended_at is None or wave.ended_at >= limit)


def finished_steps(rollout: Rollout, orders: Iterable[Order]) -> tuple[Step, ...]:
    """Return the finished steps of machines that no operator has excused."""
    return () if rollout.aborting else tuple(_steps(rollout, orders, StepState.DONE))


def stopped_outside(steps: Iterable[Step], stopped: Collection[MachineId]) -> tuple[UnwellMachine, ...]:
    """Return the machines that were stopped outside forewarn since their work."""
    reason = "is off, as its hypervisor says,"
    return tuple(UnwellMachine(step=step, reason=reason) for step in steps if step.machine in stopped)


def is_stopped_by_others(records: Iterable[Record]) -> bool:
    """Return whether a machine was stopped outside forewarn, from its records, newest first."""
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
    """Return the machines that have exceeded the time limit."""
    limits = _limits(rollout, orders, quiet, policy)
    return {
        step.machine: Waiting(what=step.name, reason=reason) for step, reason, limit in limits if limit <= now
    }


def next_limit(
    rollout: Rollout,
    orders: Iterable[Order],
    quiet: Iterable[UnwellMachine],
    *,
    now: datetime,
    policy: Policy,
) -> datetime | None:
    """Return when the next machine reaches the time limit."""
    limits = (limit for _, _, limit in _limits(rollout, orders, quiet, policy))
    return min((limit for limit in limits if limit > now), default=None)


def _limits(
    rollout: Rollout, orders: Iterable[Order], quiet: Iterable[UnwellMachine], policy: Policy
) -> Iterator[tuple[Step, str, datetime]]:
    """Yield each step with its time limit, and the reason that holds after it."""
    limit = rollout.terms.health
    span, work = format_span(limit), expected_work(rollout, policy)
    yield from (
        (step, f"is not healthy {span} after its work should have been over", step.begun_at + work + limit)
        for step in _steps(rollout, orders, StepState.RUNNING)
        if step.begun_at is not None
    )
    yield from (
        (each.step, f"{each.reason} {span} after its work", each.step.ended_at + limit)
        for each in quiet
        if each.step.ended_at is not None
    )


def expected_work(rollout: Rollout, policy: Policy) -> timedelta:
    """Return the expected duration of one stage on a host."""
    return rollout.terms.expected or policy.expected_work


def _steps(rollout: Rollout, orders: Iterable[Order], state: StepState) -> Iterator[Step]:
    excused = frozenset(rollout.excused)
    for order in orders:
        for stage in order.stages:
            # The order itself watches how long a host is away.
            if state is StepState.RUNNING and stage.kind is StageKind.HOST:
                continue
            yield from (step for step in stage.steps if step.state is state and step.machine not in excused)
