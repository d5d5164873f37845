"""Answers about the clock, probes, errors and holds."""

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

    kind: str  #: Clock of the server: `system`, `manual`, or a factor such as `x60`.
    now: datetime  #: The current service time.
    speed: float  #: Seconds of service time per second of real time.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsetAnswer(ApiAnswer):
    """The difference between service time and system time."""

    offset_seconds: float  #: Service time minus system time.


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(ApiAnswer):
    """The answer of a successful probe."""

    status: str  #: `ok` or `ready`.


IN_MEMORY_ONLY = (
    "in effect, but only in memory: the database cannot be written. "
    "The server saves it first when the database is back. It is lost if the server ends before"
)
NOT_KEPT = "not in effect: the server could not save it"


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRunningAnswer(ApiAnswer):
    """A step that still runs although a hold stopped its order."""

    order: str  #: Id of the order.
    host: str | None  #: Host of the order. Null: an order on a machine.
    machine: str | None  #: Machine of the step. Null: a step on the host itself.
    task: str | None  #: Task on the host itself. Null: a step on a machine.
    too_late: bool  #: Whether the driver can no longer cancel the step.
    why: str | None  #: Why the driver does not know the state of the step.

    @classmethod
    def of(cls, order: Order) -> Iterator[Self]:
        """Show the running steps of an order."""
        for step in order.driven:
            machine = step.name if isinstance(step, Step) else None
            task = None if isinstance(step, Step) else step.name
            # The answer to the next heartbeat tells an external driver to stop.
            late = step.too_late and order.driver_of(step) != EXTERNAL
            yield cls.like(step, order=order.id, host=order.host, machine=machine, task=task, too_late=late)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAnswer(ApiAnswer):
    """A hold: new work in its scope is neither announced nor started."""

    NOUN: ClassVar = "hold"

    id: str  #: GUID of the hold, in upper case.
    reach: str  #: Scope in words.
    project: str | None  #: The hold applies only to this project.
    host: str | None  #: The hold applies only to this host.
    reason: str  #: Why the hold was set.
    by: str  #: Name of the caller that set the hold.
    at: datetime  #: When the hold was set, in service time.
    abort: bool  #: Whether the hold also stops work that has started.
    still_running: tuple[StillRunningAnswer, ...]  #: Steps that the hold stops and that still run.
    saved: bool  #: Whether the hold is in the database.
    note: str | None  #: Consequences if the hold is not saved. Null: it is saved.
    refused: str | None  #: Why the hold could not be saved. It is not in effect. Null: it is.

    @classmethod
    def of(
        cls,
        hold: Hold,
        *,
        still_running: Iterable[Order] = (),
        saved: bool = True,
        refused: str | None = None,
    ) -> Self:
        """Show a hold: saved, only in memory, or refused when the server tried to save it."""
        note = None if saved else IN_MEMORY_ONLY if refused is None else NOT_KEPT
        running = tuple(step for order in still_running for step in StillRunningAnswer.of(order))
        return cls.like(
            hold, reach=reach(hold), still_running=running, saved=saved, note=note, refused=refused
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer(ApiAnswer):
    """The body of every error."""

    NOUN: ClassVar = "error"

    code: str  #: Kind of error for programs, such as `Invalid` or `NotFound`.
    #: Explanation for people. An error about a field begins with its path: `windows[0].start: expected …`.
    message: str
