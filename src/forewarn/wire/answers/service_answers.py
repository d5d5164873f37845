"""The service itself: its clock, its probes, its errors, and what is held."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.admission.holds import reach
from forewarn.core.basic_types import EXTERNAL
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import Order, Step
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAnswer(ApiAnswer):
    """Service time."""

    kind: str
    now: datetime
    speed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsetAnswer(ApiAnswer):
    """How far service time is ahead of the system's."""

    offset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(ApiAnswer):
    """A probe's answer."""

    status: str


# What whoever holds something must know while nothing can be saved.
IN_MEMORY_ONLY = (
    "in memory only, and obeyed: nothing can be saved now. "
    "It is saved before anything else when that is possible again, and lost if the server ends before"
)


# Of one that could not be kept.
NOT_KEPT = "not in force: it could not be kept when it was to be saved"


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRunningAnswer(ApiAnswer):
    """What still runs though a hold has stopped its order: on a machine, or on a host itself."""

    order: str
    host: str | None  # of an order on a host
    machine: str | None
    task: str | None  # what is done to the host itself
    too_late: bool  # it can no longer be called off; else its driver is being asked
    why: str | None  # why its driver cannot tell how it is doing

    @classmethod
    def of(cls, order: Order) -> Iterator[Self]:
        """Show what still runs of an order."""
        for step in order.driven:
            machine = step.name if isinstance(step, Step) else None
            task = None if isinstance(step, Step) else step.name
            # Those who work outside are told to stop when they next report.
            late = step.too_late and order.driver_of(step) != EXTERNAL
            yield cls.like(step, order=order.id, host=order.host, machine=machine, task=task, too_late=late)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAnswer(ApiAnswer):
    """Where nothing new is announced or started, and in words what that reaches."""

    NOUN: ClassVar = "hold"

    id: str
    reach: str
    project: str | None
    host: str | None
    reason: str
    by: str
    at: datetime
    abort: bool  # what was under way there is called off
    still_running: tuple[StillRunningAnswer, ...]  # of what it calls off
    saved: bool
    note: str | None  # what becomes of one that is not saved
    refused: str | None  # why one could not be kept: it holds nothing

    @classmethod
    def of(
        cls,
        hold: Hold,
        *,
        still_running: Iterable[Order] = (),
        saved: bool = True,
        refused: str | None = None,
    ) -> Self:
        """Show a hold: saved, in memory alone, or refused when it was to be saved."""
        note = None if saved else IN_MEMORY_ONLY if refused is None else NOT_KEPT
        running = tuple(step for order in still_running for step in StillRunningAnswer.of(order))
        return cls.like(
            hold, reach=reach(hold), still_running=running, saved=saved, note=note, refused=refused
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer(ApiAnswer):
    """What went wrong with a request that was refused."""

    NOUN: ClassVar = "error"

    code: str
    message: str
