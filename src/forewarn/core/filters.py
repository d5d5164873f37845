"""What lists and searches are narrowed to."""

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

# Fewer characters occur in the vm-ids of many machines.
LEAST_OF_ID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFilter:
    """Which machines are asked for; None and nothing mean any."""

    project: ProjectName | None = None
    group: GroupName | None = None
    host: HostName | None = None
    places: frozenset[HostName] = frozenset()  # where they will be: the hosts that they are bound for, or on
    bound_for: HostName | None = None
    names: frozenset[str] = frozenset()  # in any case
    begins: str = ""  # how their names do, in any case
    # A part of the name, the address or (of at least `LEAST_OF_ID` characters) the vm-id, in any case.
    contains: str = ""


ANY_MACHINE = MachineFilter()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Which orders are asked for; None means any."""

    state: OrderState | None = None
    only_open: bool = False
    host: HostName | None = None  # those on it, and open ones on machines that it carries
    machine: MachineName | None = None  # those that it was ordered for, told of, or is to be touched by


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are asked for; None means any."""

    past: bool = False  # those that are over too
    begins: str = ""  # how their ids do
    host: HostName | None = None  # those of orders on it, and of open ones on machines that it carries
    machine: MachineName | None = None  # those that named it
    since: datetime | None = None  # those that were not over by then
    until: datetime | None = None  # those that were announced before


ANY_ORDER = OrderFilter()
CURRENT_EVENTS = EventFilter()
