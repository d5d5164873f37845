"""What one use case has changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self, TypeVar

from forewarn.core.copies import replace
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.numbers import UNSAVED, given
from forewarn.core.model.order import Order
from forewarn.core.model.pace import NO_MOVES, Pace
from forewarn.core.model.project import Project
from forewarn.core.model.promise import MonthlyPromises
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.words import GroupName, HostName, Kind, MachineId, OrderId, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one use case has changed: saved in one transaction, or not at all.

    What is new in it has relative numbers, until it is saved.
    """

    now: datetime
    as_of: int | None = None  # the newest number of what it was decided on; None: whatever is saved
    defaults: FleetDefaults | None = None  # None: as they were
    projects: tuple[Project, ...] = ()
    hosts: tuple[Host, ...] = ()
    groups: tuple[Group, ...] = ()
    machines: tuple[Machine, ...] = ()
    orders: tuple[Order, ...] = ()
    events: tuple[Event, ...] = ()
    records: tuple[Record, ...] = ()
    holds: tuple[Hold, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    removed_holds: tuple[str, ...] = ()
    removed_projects: tuple[ProjectName, ...] = ()
    removed_hosts: tuple[HostName, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    # What is saved of the orders and machines above, as far as they are not new.
    orders_before: Mapping[OrderId, Order] = field(default_factory=dict)
    machines_before: Mapping[MachineId, Machine] = field(default_factory=dict)
    # Groups that lost an event, gained a healthy machine or have another policy: orders that wait for them
    # are looked at again.
    relieved_groups: frozenset[GroupName] = frozenset()
    # Hosts that gained a machine, which needs a notice of its own, or whose reachability changed: their
    # orders are looked at again.
    hosts_with_news: frozenset[HostName] = frozenset()
    # All groups and hosts that anything has changed about, before and after: rollouts may wait for them.
    changed_groups_and_hosts: frozenset[str] = frozenset()
    # Something that concerns every open order has changed.
    wake_all: bool = False
    # A group with a budget lost a machine, or needs more: rollouts may wait for what will never be.
    budgets_tightened: bool = False
    # Others have stopped a machine: rollouts that have worked on it must know.
    machine_found_off: bool = False
    # How many more machines the records of a kind name, for the metrics.
    tallies: Mapping[Kind, int] = field(default_factory=dict)
    # How long moves that are over now were expected to take and took, to be added to those before.
    moves: Pace = NO_MOVES
    # What has become of promises, to be added to what is counted.
    promises: tuple[MonthlyPromises, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing has changed."""
        return self == Changes(now=self.now, as_of=self.as_of)

    @property
    def carried(self) -> Mapping[HostName, int]:
        """How many machines more or less each host carries, those on their way to it included."""
        counts: Counter[HostName] = Counter()
        counts.update(each.destination for each in self.machines if each.destination is not None)
        before = (each.destination for each in self.machines_before.values())
        counts.subtract(host for host in before if host is not None)
        return {host: more for host, more in counts.items() if more}

    def numbered(self, *, after: int) -> Self:
        """Return the same with the numbers that all new things are given: the next ones after one."""
        return replace(
            self,
            as_of=after,
            records=_numbered(self.records, after),
            orders=_numbered(self.orders, after),
            events=_numbered(self.events, after),
            groups=tuple(
                replace(each, born=given(each.born, after=after)) if each.born > UNSAVED else each
                for each in self.groups
            ),
            rollouts=_numbered(self.rollouts, after),
        )


Numbered = TypeVar("Numbered", Record, Order, Event, Rollout)


def _numbered(values: tuple[Numbered, ...], after: int) -> tuple[Numbered, ...]:
    return tuple(
        replace(each, number=given(each.number, after=after)) if each.number > UNSAVED else each
        for each in values
    )
