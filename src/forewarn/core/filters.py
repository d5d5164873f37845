"""Filters for lists and searches."""

from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.core.basic_types import (
    EventId,
    GroupName,
    HostName,
    MachineName,
    OrderId,
    OrderState,
    ProjectName,
)
from forewarn.core.model.record import Record

# Shorter texts occur in the vm-ids of many machines.
SHORTEST_ID_PART = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFilter:
    """Filter of machines; None and empty values match all."""

    project: ProjectName | None = None
    group: GroupName | None = None
    host: HostName | None = None
    places: frozenset[HostName] = frozenset()  # the hosts that they are on, or are moving to
    bound_for: HostName | None = None
    names: frozenset[str] = frozenset()  # case-insensitive
    begins: str = ""  # a prefix of the name, case-insensitive
    # Part of the name, the address or (from `SHORTEST_ID_PART` characters on) the vm-id, case-insensitive.
    contains: str = ""


ANY_MACHINE = MachineFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Filter of history records; None matches all."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    event: EventId | None = None
    order: OrderId | None = None
    group: GroupName | None = None
    host: HostName | None = None
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    kinds: frozenset[str] = frozenset()  # empty matches all
    below: int | None = None  # exclusive: the cursor of a page
    above: int | None = None  # exclusive; the oldest records come first
    limit: int = 100

    def after(self, number: int) -> "HistoryFilter":
        """Return the filter of the next page, after a record."""
        return replace(self, below=number) if self.above is None else replace(self, above=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Filter of followed records; None and empty values match all."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()  # excluded kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A batch of records after some number, oldest first."""

    records: tuple[Record, ...]
    number: int  # where the next batch starts
    more: bool  # whether more records may exist already


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Filter of orders; None matches all."""

    state: OrderState | None = None
    only_open: bool = False
    host: HostName | None = None  # orders on it, and open orders on its machines
    machine: MachineName | None = None  # orders on it, and orders that announced or plan work on it


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Filter of events; None matches all."""

    past: bool = False  # include finished events
    begins: str = ""  # a prefix of the id
    host: HostName | None = None  # events of orders on it, and of open orders on its machines
    machine: MachineName | None = None  # events that named it
    since: datetime | None = None  # events that ended later, or are still listed
    until: datetime | None = None  # events that were announced earlier


ANY_ORDER = OrderFilter()
CURRENT_EVENTS = EventFilter()
