"""Which records are asked for, and how they are read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from forewarn.core.copies import replace
from forewarn.core.model.record import Record
from forewarn.core.retention import Pruning
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    MachineName,
    OrderId,
    ProjectName,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which records are asked for; None means any."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    event: EventId | None = None
    order: OrderId | None = None
    group: GroupName | None = None
    host: HostName | None = None
    since: datetime | None = None
    until: datetime | None = None  # and not from then on
    kinds: frozenset[str] = frozenset()  # nothing means any
    below: int | None = None  # only numbers below this one: the cursor of a page
    above: int | None = None  # only numbers above this one, and the oldest first
    limit: int = 100

    def after(self, number: int) -> "HistoryFilter":
        """Return the same for the records that follow one."""
        return replace(self, below=number) if self.above is None else replace(self, above=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which records are followed; None and nothing mean any."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()  # kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The next records after some number, oldest first."""

    records: tuple[Record, ...]
    number: int  # where to go on: there is nothing else up to it
    more: bool  # whether there may be more at once


class RecordQueries(Protocol):
    """Reads the records of a scope."""

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first; those above a number oldest first."""
        ...

    def newest(self) -> int:
        """Return the number of the newest change."""
        ...

    def following(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read records after a number, oldest first."""
        ...

    def count_following(self, number: int, wanted: RecordFilter) -> int:
        """Count the records after a number."""
        ...

    def pruning(self) -> Pruning:
        """Return how far old records have been removed."""
        ...


class RecordChanges(RecordQueries, Protocol):
    """Reads and forgets records."""

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget records."""
        ...

    def remove_notices(self, events: Collection[EventId]) -> None:
        """Forget whom events named and who was sent them when, if they are over and have no record left."""
        ...

    def set_pruning(self, pruning: Pruning) -> None:
        """Keep how far old records have been removed."""
        ...
