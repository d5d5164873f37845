"""What a scenario says: what happens when, on which machines, and what is expected of their guests.

All times are service time, counted from the start.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from forewarn.core.fleet import FleetSpec
from forewarn.core.words import Action, Work

# As long as Azure's documentation lets the first call of a machine take.
SLOW = timedelta(minutes=2)
# Enough to see the event, and too little for a guest that counts on its type's minimum.
SHORT_NOTICE = timedelta(seconds=30)
# Past any notice but that of degraded hardware, with the work behind it.
LIMIT = timedelta(hours=2)


class Start(StrEnum):
    """When the time of a scenario begins."""

    FIRST_POLL = "first-poll"  # every machine concerned has polled
    NOW = "now"


class FaultKind(StrEnum):
    """What a guest may meet instead of the answer that is due."""

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
class OrderStep:
    """Something is done to a machine or a host."""

    action: Action
    machine: str | None = None
    host: str | None = None
    work: Work | None = None  # of a maintenance

    def __str__(self) -> str:
        work = f" ({self.work})" if self.work else ""
        return f"{self.action} {self.machine or self.host}{work}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """The order placed last is called off."""

    def __str__(self) -> str:
        return "the last order is cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The metadata plane misbehaves."""

    kind: FaultKind
    machines: tuple[str, ...] = ()  # none: all
    lasts: timedelta | None = None  # None: to the end
    calls: int | None = None  # of each machine that it spoils at most
    delay: timedelta = SLOW  # of a slow answer
    notice: timedelta = SHORT_NOTICE  # that is left when a short notice is first shown
    number: int = 0  # tells faults apart that are alike

    def __str__(self) -> str:
        whose = f" for {', '.join(self.machines)}" if self.machines else ""
        return f"fault {self.kind}{whose}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens, and when."""

    at: timedelta
    does: OrderStep | CancelStep | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCommand:
    """A program that is run as the guest of a machine."""

    machine: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the guests of some machines should have done by the end; None: no matter."""

    machines: tuple[str, ...]
    polled: bool | None = None
    saw: bool | None = None
    approved: bool | None = None
    within: timedelta | None = None  # from the announcement to the approval
    recovered: bool | None = None  # got a sound answer after the last fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole rehearsal."""

    name: str
    about: str
    fleet: FleetSpec
    steps: tuple[Step, ...]
    expect: Expectation
    clock: str = "x60"
    start: Start = Start.FIRST_POLL
    limit: timedelta = LIMIT
    guests: tuple[GuestCommand, ...] = ()

    @property
    def faults(self) -> tuple[Step, ...]:
        """The steps that are faults."""
        return tuple(step for step in self.steps if isinstance(step.does, Fault))

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines of its fleet, by name."""
        return tuple(machine.name for machine in self.fleet.machines)
