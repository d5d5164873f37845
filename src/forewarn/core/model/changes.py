"""What one use case has changed, and which orders and rollouts the changes wake."""

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

# Above every number that a store will ever give: what is new comes after all that is known.
UNSAVED = 1 << 62


def given(number: int, *, after: int) -> int:
    """Return the number that a relative one becomes if the newest that was given is another one."""
    return number - UNSAVED + after if number > UNSAVED else number


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
    hosts_to_recheck: frozenset[HostName] = frozenset()
    # All groups and hosts that anything has changed about, before and after: rollouts may wait for them.
    changed_groups_and_hosts: frozenset[str] = frozenset()
    # Something that concerns every open order has changed.
    wake_all: bool = False
    # A group with a budget lost a machine, or needs more: rollouts may wait for what will never be.
    budgets_tightened: bool = False
    # Others have stopped a machine: rollouts that have worked on it must know.
    machine_stopped_outside: bool = False
    # How many more machines the records of a kind name, for the metrics.
    tallies: Mapping[Kind, int] = field(default_factory=dict)
    # How long moves that are over now were expected to take and took, to be added to those before.
    moves: MovePace = NO_MOVES
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


def with_woken(changes: Changes, base: Slice, *, groups: Mapping[GroupName, Group]) -> Changes:
    """Return changes with whom they wake; `base` is what was before, `groups` what is now."""
    return replace(
        changes,
        relieved_groups=frozenset(_relieved(changes, base)),
        hosts_to_recheck=frozenset(chain(_gaining_hosts(changes), _lost_or_found(changes, base))),
        changed_groups_and_hosts=frozenset(name for name in _stirred(changes) if name is not None),
        machine_stopped_outside=any(_found_off(changes)),
        budgets_tightened=any(
            name in groups and groups[name].policy.budget for name in _tightened(changes, base)
        ),
    )


# What orders wait for whose machines find no room, as others wait for a group; no group is called so.
ROOM = GroupName("room/")


def _relieved(changes: Changes, base: Slice) -> Iterable[GroupName]:
    yield from (event.group for event in changes.events if not event.listed or _names_fewer(event, base))
    if changes.hosts or any(map(_makes_room, changes.machines_before.values())):
        yield ROOM
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.state is not MachineState.RUNNING:
            continue
        if before is None or (before.state, before.group) != (machine.state, machine.group):
            yield machine.group
    for group in changes.groups:
        known = base.groups.get(group.name)
        if known is not None and known.policy != group.policy:
            yield group.name


def _names_fewer(event: Event, base: Slice) -> bool:
    """Return whether a machine has left an event: budgets and `freezes-at-once` count those that it names."""
    before = base.events.get(event.id)
    return before is not None and len(event.resources) < len(before.resources)


def _gaining_hosts(changes: Changes) -> Iterable[HostName]:
    """Return the hosts that machines have come to, or do not come to any more."""
    after = {machine.id: machine.destination for machine in changes.machines}
    for id_, known in changes.machines_before.items():
        if known.bound_for is not None and after.get(id_) != known.bound_for:
            yield known.bound_for
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.host is not None and (before is None or before.host != machine.host):
            yield machine.host


def _lost_or_found(changes: Changes, base: Slice) -> Iterable[HostName]:
    """Return the hosts that can be reached no more, or again: what waits for that says so."""
    for host in changes.hosts:
        before = base.hosts.get(host.name)
        if before is not None and (before.unreachable_since is None) != (host.unreachable_since is None):
            yield host.name


def _stirred(changes: Changes) -> Iterable[str | None]:
    """Return the groups and hosts that anything has changed about, before and after."""
    yield from (event.group for event in changes.events)
    yield from (order.host for order in changes.orders)
    for machine in chain(changes.machines, changes.machines_before.values()):
        yield from (machine.group, machine.host)
    yield from (group.name for group in changes.groups)
    yield from (host.name for host in changes.hosts)
    yield from chain(changes.removed_groups, changes.removed_hosts)


def _tightened(changes: Changes, base: Slice) -> Iterable[GroupName]:
    """Return the groups that have lost a machine, or need more than before."""
    after = {machine.id: machine.group for machine in changes.machines}
    for id_, machine in changes.machines_before.items():
        if after.get(id_) != machine.group:
            yield machine.group
    for group in changes.groups:
        known = base.groups.get(group.name)
        if known is not None and group.policy.budget > known.policy.budget:
            yield group.name


def _found_off(changes: Changes) -> Iterable[bool]:
    """Return of each machine whether others have stopped it: forewarn itself records a step."""
    changed = {record.machine for record in changes.records if record.kind is Kind.MACHINE_CHANGED}
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        ran = before is not None and before.state is not MachineState.STOPPED
        yield ran and machine.state is MachineState.STOPPED and machine.name in changed


def _makes_room(before: Machine) -> bool:
    """Return whether a machine that has changed may have left room: it took something, where it was."""
    return bool(before.resources) and before.destination is not None
