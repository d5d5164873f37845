"""Answers about rehearsals."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFields(ApiAnswer):
    """A fault of the guest endpoint, as a rehearsal requests it."""

    number: int  #: Identifies the fault within the rehearsal.
    kind: FaultKind  #: Kind of fault.
    machines: tuple[str, ...]  #: Machines that see the fault. Empty: all machines of the rehearsal.
    since: datetime | None  #: When the fault begins, in service time. Null: at once.
    until: datetime | None  #: When the fault ends, in service time. Null: with the rehearsal.
    calls: int | None  #: Maximum number of affected requests of each machine. Null: no maximum.
    delay_seconds: float  #: Delay of a slow answer.
    notice_seconds: float  #: Notice that a short notice shows.


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAnswer(FaultFields):
    """A fault of a running rehearsal."""

    on: bool  #: Whether the fault is active now.

    @classmethod
    def of(cls, fault: Fault, *, now: datetime) -> Self:
        """Show a fault."""
        return cls.like(fault, on=fault.on(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEventAnswer(ApiAnswer):
    """An event that a guest has seen."""

    event: str  #: Id of the event.
    at: datetime  #: When the guest was first sent the event, in service time.
    what: str  #: The event at that time, in words.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedEventAnswer(ApiAnswer):
    """An event that a guest has approved."""

    event: str  #: Id of the event.
    at: datetime  #: When the guest approved the event, in service time.


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsingGuestAnswer(ApiAnswer):
    """The guest of a machine in a rehearsal."""

    machine: str  #: Name of the machine.
    polls: int  #: Number of polls.
    spoiled: int  #: Number of requests that a fault affected.
    meets: str  #: Faults that affect the guest now, in words.
    first_poll: datetime | None  #: First poll, in service time. Null: none.
    last_poll: datetime | None  #: Last poll, in service time. Null: none.
    last_sound: datetime | None  #: Last poll without a fault, in service time. Null: none.
    seen: tuple[SeenEventAnswer, ...]  #: Events that the guest was sent.
    listed: tuple[str, ...]  #: Ids of the events in the last document that the guest was sent.
    approved: tuple[ApprovedEventAnswer, ...]  #: Events that the guest approved.


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalAnswer(ApiAnswer):
    """A scenario that runs in a project."""

    NOUN: ClassVar = "rehearsal"

    id: str  #: Id that the caller chose.
    scenario: str  #: Name of the scenario.
    by: str  #: Name of the caller that began the rehearsal.
    begun_at: datetime  #: When the rehearsal began, in service time.
    faults: tuple[FaultAnswer, ...]  #: Faults of the guest endpoint.
    guests: tuple[RehearsingGuestAnswer, ...]  #: Guests that take part.


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRehearsalAnswer(ApiAnswer):
    """A rehearsal that has ended."""

    rehearsal: RehearsalAnswer  #: Final state of the rehearsal.
    called_off: tuple[str, ...]  #: Ids of its orders that were cancelled.
