"""Whether the machines of a wave are well again: what pauses a rollout though no step has failed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from forewarn.core.model import Order, Step, Waiting
from forewarn.core.moments import lasting
from forewarn.core.waves import Rollout
from forewarn.core.words import MachineId, StepState


def silent(rollout: Rollout, orders: Iterable[Order], seen: Mapping[MachineId, datetime]) -> tuple[Step, ...]:
    """Find the machines that polled before their work and have not since; `seen` has the newest polls."""
    if not rollout.conditions.require_poll or rollout.aborting:
        return ()
    return tuple(
        step
        for step in _steps(rollout, orders, StepState.DONE)
        if step.ended_at is not None and step.machine in seen and seen[step.machine] <= step.ended_at
    )


def unwell(
    rollout: Rollout, orders: Iterable[Order], quiet: Iterable[Step], *, now: datetime
) -> dict[MachineId, Waiting]:
    """Say which machines have not become healthy in time."""
    limit = rollout.conditions.health
    span = lasting(limit.total_seconds())
    slow = {
        step.machine: Waiting(what=step.name, reason=f"is not healthy {span} after its work began")
        for step in _steps(rollout, orders, StepState.RUNNING)
        if step.begun_at is not None and step.begun_at + limit <= now
    }
    mute = {
        step.machine: Waiting(what=step.name, reason=f"has not polled again {span} after its work")
        for step in quiet
        if step.ended_at is not None and step.ended_at + limit <= now
    }
    return slow | mute


def look_at(
    rollout: Rollout, orders: Iterable[Order], quiet: Iterable[Step], *, now: datetime
) -> datetime | None:
    """Say when the next machine should be healthy: one that is worked on, or one that must poll again."""
    worked_on = (step.begun_at for step in _steps(rollout, orders, StepState.RUNNING))
    moments = (*worked_on, *(step.ended_at for step in quiet))
    limits = (moment + rollout.conditions.health for moment in moments if moment is not None)
    return min((moment for moment in limits if moment > now), default=None)


def _steps(rollout: Rollout, orders: Iterable[Order], state: StepState) -> Iterator[Step]:
    excused = frozenset(rollout.excused)
    for order in orders:
        yield from (step for step in order.steps if step.state is state and step.machine not in excused)
