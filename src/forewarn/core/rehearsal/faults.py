"""The faults of a rehearsal: what a guest may meet instead of the answer that is due."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.model.event import Event
from forewarn.core.words import EventStatus

# As long as Azure's documentation lets the first call of a machine take.
SLOW = timedelta(minutes=2)
# Enough to see the event, and too little for a guest that counts on its type's minimum.
SHORT_NOTICE = timedelta(seconds=30)


class FaultKind(StrEnum):
    """What is wrong with an answer."""

    SLOW = "slow"
    HANG = "hang"
    TOO_MANY = "429"
    ERROR = "500"
    UNAVAILABLE = "503"
    EMPTY = "empty"
    TEXT = "text"
    VANISHED = "vanished"
    BORN_STARTED = "born-started"
    SHORT_NOTICE = "short-notice"
    INCARNATION_RESTART = "incarnation-restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The metadata plane misbehaves; when, is counted in service time."""

    kind: FaultKind
    machines: tuple[str, ...] = ()  # by name; none: all
    since: datetime | None = None  # None: from the beginning
    until: datetime | None = None  # None: to the end
    calls: int | None = None  # of each machine that it spoils at most
    delay: timedelta = SLOW  # of a slow answer
    notice: timedelta = SHORT_NOTICE  # that is left when a short notice is first shown
    number: int = 0  # tells faults of a rehearsal apart, and stays when a fault gets other times

    def __str__(self) -> str:
        whose = f" for {', '.join(self.machines)}" if self.machines else ""
        return f"fault {self.kind}{whose}"

    def concerns(self, machine: str) -> bool:
        """Return whether a machine's guest meets the fault."""
        return not self.machines or machine in self.machines

    def on(self, now: datetime) -> bool:
        """Return whether the fault is on at a moment."""
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)

    def hides(self, event: Event, now: datetime) -> bool:
        """Return whether the fault hides an event from guests."""
        scheduled = event.status is EventStatus.SCHEDULED
        match self.kind:
            case FaultKind.VANISHED:
                return True
            case FaultKind.BORN_STARTED:
                return scheduled
            case FaultKind.SHORT_NOTICE:
                return scheduled and event.not_before - now > self.notice
            case _:
                return False
