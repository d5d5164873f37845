"""Rehearsals: what is being played, and what guests have done so far."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFields(ApiAnswer):
    """What guests meet instead of the answer that is due, as a rehearsal asks for it."""

    number: int
    kind: FaultKind
    machines: tuple[str, ...]
    since: datetime | None
    until: datetime | None
    calls: int | None
    delay_seconds: float
    notice_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAnswer(FaultFields):
    """What guests meet instead of the answer that is due, and whether they do now."""

    on: bool

    @classmethod
    def of(cls, fault: Fault, *, now: datetime) -> Self:
        """Show a fault."""
        return cls.like(fault, on=fault.on(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEventAnswer(ApiAnswer):
    """When a guest was first sent an event, and what the event was then."""

    event: str
    at: datetime
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedEventAnswer(ApiAnswer):
    """When a guest approved an event."""

    event: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsingGuestAnswer(ApiAnswer):
    """What the guest of a machine has done in a rehearsal so far."""

    machine: str
    polls: int
    spoiled: int  # requests that got no sound answer
    meets: str  # what is wrong with its answers at present
    first_poll: datetime | None
    last_poll: datetime | None
    last_sound: datetime | None  # answer that was as it should be
    seen: tuple[SeenEventAnswer, ...]
    listed: tuple[str, ...]  # the events of the last document it was sent
    approved: tuple[ApprovedEventAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalAnswer(ApiAnswer):
    """A scenario that is being played in a project."""

    NOUN: ClassVar = "rehearsal"

    id: str
    scenario: str
    by: str
    begun_at: datetime
    faults: tuple[FaultAnswer, ...]
    guests: tuple[RehearsingGuestAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRehearsalAnswer(ApiAnswer):
    """What was played, and the orders that were cancelled with it."""

    rehearsal: RehearsalAnswer
    called_off: tuple[str, ...]
