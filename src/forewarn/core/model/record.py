"""Records: the numbered lines of the history."""

from dataclasses import dataclass
from datetime import datetime

from forewarn.core.words import EventId, GroupName, HostName, MachineName, OrderId, ProjectName


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
