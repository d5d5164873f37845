"""The changes of one use case, and the orders and rollouts that the engine must look at because of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Self, TypeVar

from forewarn.core.basic_types import GroupName, HostName, Kind, MachineId, MachineState, OrderId, ProjectName
from forewarn.core.model.constraints import Hold
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import NO_MOVES, MovePace
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import MonthlyPromises, Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Slice

# Higher than every number that a store assigns, so new records sort after all saved ones.
UNSAVED = 1 << 62


def given(number: int, *, after: int) -> int:
    """Return the number that the store assigns to a relative number, after the newest saved one."""
    return number - UNSAVED + after if number > UNSAVED else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of one use case: saved in one transaction or not at all.

    New records, orders, events, groups and rollouts have relative numbers until the changes are saved.
    """

    now: datetime
    as_of: int | None = None  # the newest record when the decision was made; None: irrelevant
    defaults: FleetDefaults | None = None  # None: unchanged
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
    # The saved versions of the orders and machines above, and of removed machines.
    orders_before: Mapping[OrderId, Order] = field(default_factory=dict)
    machines_before: Mapping[MachineId, Machine] = field(default_factory=dict)
    # Groups that lost an event, gained a healthy machine or have a new policy. Orders that wait for them are
    # due.
    relieved_groups: frozenset[GroupName] = frozenset()
    # Hosts whose reachability changed, or that gained a machine, which needs a notice of its own. Their
    # orders are due.
    hosts_to_recheck: frozenset[HostName] = frozenset()
    # All groups and hosts with changes, before and after. Rollouts may wait for them.
    changed_groups_and_hosts: frozenset[str] = frozenset()
    # Every open order is due.
    wake_all: bool = False
    # A group with a budget lost a machine or needs more. Rollouts may wait for something impossible.
    budgets_tightened: bool = False
    # A machine was stopped outside forewarn. Rollouts that worked on it must know.
    machine_stopped_outside: bool = False
    # How many machines the records of each kind name, for the metrics.
    tallies: Mapping[Kind, int] = field(default_factory=dict)
    # The expected and the real duration of moves that ended, to add to the fleet's pace.
    moves: MovePace = NO_MOVES
    # Kept and broken promises, to add to the saved counts.
    promises: tuple[MonthlyPromises, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return self == Changes(now=self.now, as_of=self.as_of)

    @property
    def carried(self) -> Mapping[HostName, int]:
        """How many more (or fewer) machines each host carries, including those on their way to it."""
        counts: Counter[HostName] = Counter()
        counts.update(each.destination for each in self.machines if each.destination is not None)
        before = (each.destination for each in self.machines_before.values())
        counts.subtract(host for host in before if host is not None)
        return {host: more for host, more in counts.items() if more}

    def numbered(self, *, after: int) -> Self:
        """Replace relative numbers by the next ones after a number."""
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


def with_affected(changes: Changes, base: Slice, *, groups: Mapping[GroupName, Group]) -> Changes:
    """Add the groups and hosts to look at; `base` is the state before, `groups` the groups now."""
    return replace(
        changes,
        relieved_groups=frozenset(_relieved(changes, base)),
        hosts_to_recheck=frozenset(_hosts_to_recheck(changes, base)),
        changed_groups_and_hosts=frozenset(name for name in _changed_names(changes) if name is not None),
        machine_stopped_outside=_is_machine_stopped_outside(changes),
        budgets_tightened=any(
            name in groups and groups[name].policy.budget for name in _tightened(changes, base)
        ),
    )


# A pseudo-group: orders wait for it if their machines find no host. No group has this name.
ROOM = GroupName("room/")


def _relieved(changes: Changes, base: Slice) -> Iterable[GroupName]:
    yield from (event.group for event in changes.events if not event.listed or _names_fewer(event, base))
    if changes.hosts or any(each.resources and each.destination for each in changes.machines_before.values()):
        yield ROOM
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.state is not MachineState.RUNNING:
            continue
        if before is None or (before.state, before.group) != (machine.state, machine.group):
            yield machine.group
    for group in changes.groups:
        if group.name in base.groups and base.groups[group.name].policy != group.policy:
            yield group.name


def _names_fewer(event: Event, base: Slice) -> bool:
    """Whether a machine left an event: budgets and `freezes-at-once` count the machines that it names."""
    before = base.events.get(event.id)
    return before is not None and len(event.resources) < len(before.resources)


def _hosts_to_recheck(changes: Changes, base: Slice) -> Iterable[HostName]:
    """Yield the hosts that machines moved to, or no longer move to, and those with a new reachability."""
    after = {machine.id: machine.destination for machine in changes.machines}
    for id_, machine in changes.machines_before.items():
        if machine.bound_for is not None and after.get(id_) != machine.bound_for:
            yield machine.bound_for
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.host is not None and (before is None or before.host != machine.host):
            yield machine.host
    for host in changes.hosts:
        known = base.hosts.get(host.name)
        if known is not None and (known.unreachable_since is None) != (host.unreachable_since is None):
            yield host.name


def _changed_names(changes: Changes) -> Iterable[str | None]:
    """Yield the groups and hosts with changes, before and after."""
    yield from (event.group for event in changes.events)
    yield from (order.host for order in changes.orders)
    for machine in chain(changes.machines, changes.machines_before.values()):
        yield from (machine.group, machine.host)
    yield from chain((group.name for group in changes.groups), (host.name for host in changes.hosts))
    yield from chain(changes.removed_groups, changes.removed_hosts)


def _tightened(changes: Changes, base: Slice) -> Iterable[GroupName]:
    """Yield the groups that lost a machine, or need more machines than before."""
    after = {machine.id: machine.group for machine in changes.machines}
    yield from (each.group for id_, each in changes.machines_before.items() if after.get(id_) != each.group)
    for group in changes.groups:
        if group.name in base.groups and group.policy.budget > base.groups[group.name].policy.budget:
            yield group.name


def _is_machine_stopped_outside(changes: Changes) -> bool:
    """Whether a machine was stopped outside forewarn, which records its own steps differently."""
    recorded = {record.machine for record in changes.records if record.kind is Kind.MACHINE_CHANGED}
    return any(
        machine.state is MachineState.STOPPED and machine.name in recorded
        for machine in changes.machines
        if machine.id in changes.machines_before
        and changes.machines_before[machine.id].state is not MachineState.STOPPED
    )
