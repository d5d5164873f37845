"""Records, the numbered lines of the history, and the counts of kept promises."""

from dataclasses import dataclass, fields
from datetime import datetime

from forewarn.core.basic_types import EventId, GroupName, HostName, MachineName, OrderId, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A numbered line of the history."""

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
    """What became of promises: each machine whose promise of notice fell due is in one of the first three."""

    kept: int = 0
    late: int = 0
    never: int = 0
    broken: int = 0  # records that say so, whatever notice the machines then got
    unannounced: int = 0  # how often other hands were at a machine, and nothing had been promised

    @property
    def judged(self) -> int:
        """The machines whose promise of notice fell due."""
        return self.kept + self.late + self.never

    def plus(self, other: "PromiseCounts") -> "PromiseCounts":
        """Add up."""
        names = (each.name for each in fields(PromiseCounts))
        return PromiseCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyPromises(PromiseCounts):
    """What became of a project's promises in a month; what was simulated proves nothing, and stands apart."""

    project: ProjectName
    month: str  # of service time in UTC, as 2026-11
    simulated: bool


def month_of(moment: datetime) -> str:
    """Return the month of a moment in UTC."""
    return f"{moment:%Y-%m}"
