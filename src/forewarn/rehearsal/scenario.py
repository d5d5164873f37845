"""What a scenario says: what happens when, on which machines, and what is expected of their guests.

All times are service time, counted from the start.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.model.declaration import FleetSpec
from forewarn.core.rehearsal_rules import Fault
from forewarn.core.words import Action, Work

# For guests and workloads to be well again when all is over; real time, as their work is.
RECOVERY = timedelta(minutes=2)
# Past any notice but that of degraded hardware, with the work behind it.
LIMIT = timedelta(hours=2)


class Start(StrEnum):
    """When the time of a scenario begins."""

    FIRST_POLL = "first-poll"  # every machine concerned has polled
    NOW = "now"


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
    """The order placed last is cancelled."""

    def __str__(self) -> str:
        return "the last order is cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStep:
    """The metadata plane misbehaves."""

    fault: Fault
    lasts: timedelta | None = None  # None: to the end

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStep:
    """One thing that happens, and when."""

    at: timedelta
    does: OrderStep | CancelStep | FaultStep


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCommand:
    """A program that is run as the guest of a machine."""

    machine: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What tells whether the workload is well: a URL that answers, or a command; real times."""

    name: str
    url: str | None = None
    command: tuple[str, ...] = ()
    back_within: timedelta | None = None  # None: it must hold throughout
    every: timedelta = timedelta(seconds=1)
    timeout: timedelta = timedelta(seconds=5)


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
    steps: tuple[ScenarioStep, ...]
    expect: Expectation
    clock: str = "x60"
    start: Start = Start.FIRST_POLL
    limit: timedelta = LIMIT
    recovery: timedelta = RECOVERY  # real time
    guests: tuple[GuestCommand, ...] = ()
    probes: tuple[Probe, ...] = ()

    def faults(self, began: datetime | None) -> tuple[Fault, ...]:
        """Give the faults their times; before it begins, those are on that are due from the start."""
        found = enumerate(self.fault_steps)
        numbered = [(at, step.lasts, replace(step.fault, number=n)) for n, (at, step) in found]
        if began is None:
            return tuple(fault for at, _, fault in numbered if not at)
        return tuple(
            replace(fault, since=began + at, until=None if lasts is None else began + at + lasts)
            for at, lasts, fault in numbered
        )

    @property
    def orders(self) -> list[OrderStep]:
        """What is ordered."""
        return [step.does for step in self.steps if isinstance(step.does, OrderStep)]

    @property
    def fault_steps(self) -> list[tuple[timedelta, FaultStep]]:
        """The faults, and when each begins."""
        return [(step.at, step.does) for step in self.steps if isinstance(step.does, FaultStep)]

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines of its fleet, by name."""
        return tuple(machine.name for machine in self.fleet.machines)
