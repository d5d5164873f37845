"""Records, the numbered entries of the history, and counts of kept and broken promises."""

from dataclasses import dataclass, fields
from datetime import datetime

from forewarn.core.basic_types import EventId, GroupName, HostName, MachineName, OrderId, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A numbered entry of the history."""

    number: int
    at: datetime
    kind: str
    project: ProjectName | None = None
    group: GroupName | None = None
    host: HostName | None = None
    machine: MachineName | None = None
    event: EventId | None = None
    order: OrderId | None = None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseCounts:
    """The outcome of promises: `kept`, `late` and `never` count machines whose notice fell due."""

    kept: int = 0
    late: int = 0
    never: int = 0
    broken: int = 0  # records of broken promises, whatever notice the machines then got
    unannounced: int = 0  # machines that changed outside forewarn without an event

    @property
    def judged(self) -> int:
        """The machines whose notice fell due."""
        return self.kept + self.late + self.never

    def plus(self, other: "PromiseCounts") -> "PromiseCounts":
        """Add counts."""
        names = (each.name for each in fields(PromiseCounts))
        return PromiseCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyPromises(PromiseCounts):
    """The outcome of a project's promises in a month; simulated work is counted separately."""

    project: ProjectName
    month: str  # of service time in UTC: `2026-11`
    simulated: bool
