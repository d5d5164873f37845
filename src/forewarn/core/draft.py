"""A working copy of part of the fleet, which the rules read and change.

A draft holds no policy. It returns the newest version of each object, numbers new ones relative to the saved
ones, and at the end returns everything to save as one value.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar

from forewarn.core.basic_types import (
    EventId,
    GroupName,
    HostName,
    Kind,
    MachineId,
    OrderId,
    ProjectName,
    StepState,
)
from forewarn.core.model.changes import UNSAVED, Changes, given, with_affected
from forewarn.core.model.constraints import ArmedDomain, Budget, blocks_other_domains
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import NO_MOVES, MovePace
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import MonthlyPromises, PromiseCounts, Record
from forewarn.core.model.slice import Slice
from forewarn.core.webhook_rules import Webhook

About: TypeAlias = Machine | Event | Order | Group | Host | Project | Webhook | None

_NONE_ARMED = ArmedDomain()
# The tables of a draft that have the same names in `Slice` and `Changes`; the keys in some may be removed.
_TABLES = ("projects", "hosts", "groups", "machines", "orders", "events", "holds")
_REMOVABLE = ("projects", "hosts", "groups", "machines", "holds")

Key = TypeVar("Key")
Value = TypeVar("Value")


class RoomNotLoaded(LookupError):
    """A machine needs a host, but the load of hosts was not loaded."""


class Draft:
    """A working copy of part of the fleet."""

    def __init__(self, base: Slice, *, now: datetime, new_id: Callable[[], str]) -> None:
        """Start from what is saved; `new_id` returns an upper-case GUID."""
        self.base = base
        self.now = now
        self.new_id = new_id
        self.grace = base.grace
        self.pace = base.pace
        self._moves = NO_MOVES
        self.holds = dict(base.holds)
        self.defaults = base.defaults
        self.projects = dict(base.projects)
        self.hosts = dict(base.hosts)
        self.groups = dict(base.groups)
        self.machines = dict(base.machines)
        self.orders = dict(base.orders)
        self.events = dict(base.events)
        self._room = None if base.room is None else dict(base.room)
        # Indexes, built at first use. An entry may be outdated: the object itself decides.
        self._ids_by_order: dict[OrderId, list[EventId]] | None = None
        self._ids_by_host: dict[HostName, list[MachineId]] | None = None
        self._ids_by_machine: dict[MachineId, set[OrderId]] = defaultdict(set)
        self._unindexed = dict.fromkeys(base.orders)
        self._given_after: int | None = None
        self._listed = {group: dict(domains) for group, domains in base.listed.items()}
        self._armed = {group: dict(domains) for group, domains in base.armed.items()}
        self._records: list[Record] = []
        self._wake_all = False
        self._tallies: dict[Kind, int] = {}
        # By project, month, and whether it was simulated.
        self._promises: dict[tuple[ProjectName, str, bool], PromiseCounts] = {}

    @property
    def number(self) -> int:
        """The number of the newest record, relative to the saved ones."""
        return UNSAVED + len(self._records)

    @property
    def room(self) -> dict[HostName, Room]:
        """The load of the emptiest usable hosts, including the moves of this draft."""
        if self._room is None:
            raise RoomNotLoaded("a machine is to be moved, but the room for it was not loaded")
        return self._room

    @property
    def known_room(self) -> Mapping[HostName, Room]:
        """The same; empty if it was not loaded."""
        return {} if self._room is None else self._room

    def record(
        self, kind: Kind, about: About, *, order: OrderId | None = None, by: str = "", reason: str = ""
    ) -> int:
        """Add a record about an object to the history, and return its number."""
        said = {"order": order, **self._names_of(about), "by": by, "reason": reason}
        self._records.append(Record(number=self.number + 1, at=self.now, kind=kind, **said))
        if kind is Kind.PROMISE_BROKEN and isinstance(about, Event):
            self.count(kind, len(about.resources))
            self.count_promises(about, PromiseCounts(broken=1))
        if kind is Kind.UNANNOUNCED_IMPACT and isinstance(about, Machine):
            self.count(kind, 1)
            self._count_promises(about.project, PromiseCounts(unannounced=1), simulated=False)
        return self.number

    def count_move(self, *, expected: timedelta, taken: timedelta) -> None:
        """Count a finished move in the fleet's pace of moves."""
        move = MovePace(expected=expected.total_seconds(), taken=taken.total_seconds())
        self._moves = self._moves.plus(move)

    def count(self, kind: Kind, machines: int) -> None:
        """Count the machines that a record of some kind names."""
        self._tallies[kind] = self._tallies.get(kind, 0) + machines

    def count_promises(self, event: Event, counts: PromiseCounts) -> None:
        """Count kept and broken promises of an event for its project and this month."""
        simulated = self.orders[event.order].simulated
        self._count_promises(self.groups[event.group].project, counts, simulated=simulated)

    def _count_promises(self, project: ProjectName, counts: PromiseCounts, *, simulated: bool) -> None:
        key = (project, f"{self.now:%Y-%m}", simulated)
        self._promises[key] = self._promises.get(key, PromiseCounts()).plus(counts)

    def _names_of(self, about: About) -> dict[str, Any]:
        """Return the names that a record of an object has."""
        match about:
            case Machine(name=name, project=project, group=group, host=host):
                return {"project": project, "group": group, "machine": name, "host": host}
            case Event(id=event, group=group, order=order, resources=named):
                machine = named[0].name if len(named) == 1 else None
                return {
                    **self._names_of(self.groups[group]),
                    "machine": machine,
                    "event": event,
                    "order": order,
                }
            case Order(id=order, project=project, machine_name=name, host=host):
                return {"project": project, "machine": name, "host": host, "order": order}
            case Group(name=group, project=project):
                return {"project": project, "group": group}
            case Host(name=host):
                return {"host": host}
            # Not the project whose records it receives: webhooks of operators are hidden from it.
            case Webhook(owner=project) | Project(name=project):
                return {"project": project}
            case None:
                return {}

    def put_event(self, event: Event) -> Event:
        """Add or replace an event."""
        known = self.events.get(event.id)
        gain = int(event.listed) - int(known is not None and known.listed)
        if not event.hint:
            domains = self._listed.setdefault(event.group, {})
            domains[event.update_domain] = domains.get(event.update_domain, 0) + gain
            armed = self._armed.setdefault(event.group, {})
            others = armed.get(event.update_domain, _NONE_ARMED)
            armed[event.update_domain] = (others if known is None else others.minus(known)).plus(event)
        if known is None and self._ids_by_order is not None:
            self._ids_by_order[event.order].append(event.id)
        self.events[event.id] = event
        return event

    def put_order(self, order: Order) -> Order:
        """Add or replace an order."""
        known = self.orders.get(order.id)
        if known is None or known.stages is not order.stages:
            self._unindexed[order.id] = None
        self.orders[order.id] = order
        return order

    def put_machine(self, machine: Machine) -> Machine:
        """Add or replace a machine; one that leaves its host remembers it."""
        if machine.host is not None:
            machine = machine if machine.last_host is None else replace(machine, last_host=None)
        elif (known := self.machines.get(machine.id)) is not None and known.host is not None:
            machine = replace(machine, last_host=known.host)
        if self._ids_by_host is not None and machine.host is not None:
            self._ids_by_host[machine.host].append(machine.id)
        self.machines[machine.id] = machine
        return machine

    def put_group(self, group: Group) -> Group:
        """Add or replace a group."""
        self.groups[group.name] = group
        return group

    def put_host(self, host: Host) -> Host:
        """Add or replace a host."""
        self.hosts[host.name] = host
        return host

    def wake(self, orders: Iterable[Order]) -> None:
        """Make orders due now."""
        for order in orders:
            known = self.orders[order.id]
            if known.due_at != self.now:
                self.put_order(replace(known, due_at=self.now))

    def wake_all(self) -> None:
        """Make every open order due now, including those that are not loaded."""
        self._wake_all = True

    def listed_domains(self, group: GroupName) -> tuple[int, ...]:
        """The update domains with a listed event of the group, lowest first; recommendations do not count."""
        return tuple(sorted(domain for domain, count in self._listed.get(group, {}).items() if count))

    def armed_domains(self, group: GroupName, *, but_of: OrderId | None = None) -> dict[int, ArmedDomain]:
        """The update domains with an armed event of the group, lowest first, except those of one order."""
        armed = dict(self._armed.get(group, {}))
        for event in () if but_of is None else self.events_of(but_of):
            if event.group == group and event.update_domain in armed:
                armed[event.update_domain] = armed[event.update_domain].minus(event)
        return {domain: armed[domain] for domain in sorted(armed) if armed[domain].events}

    def budgets(self, groups: Iterable[GroupName]) -> dict[GroupName, Budget]:
        """Return the budgets of the groups that have one, including what this draft announced."""
        asked = sorted(name for name in groups if self.groups[name].policy.budget)
        return {name: self._budget(name) for name in asked if name in self.base.budgets}

    def _budget(self, group: GroupName) -> Budget:
        budget = self.base.budgets[group]
        mine = (
            event for event in self.events.values() if event.group == group and blocks_other_domains(event)
        )
        named = {named.machine: named.name for event in mine for named in event.resources}
        return replace(budget, announced={**budget.announced, **named})

    def events_of(self, order: OrderId) -> tuple[Event, ...]:
        """The listed events of an order, oldest first."""
        if self._ids_by_order is None:
            self._ids_by_order = defaultdict(list)
            for event in self.events.values():
                self._ids_by_order[event.order].append(event.id)
        mine = (self.events[id_] for id_ in self._ids_by_order.get(order, ()))
        return tuple(sorted((event for event in mine if event.listed), key=lambda event: event.number))

    def orders_of(self, machine: MachineId) -> tuple[Order, ...]:
        """The orders that name a machine or have a step of it, oldest first."""
        for id_ in self._unindexed:
            order = self.orders[id_]
            for named in (order.machine, *[step.machine for step in order.steps]):
                if named is not None:
                    self._ids_by_machine[named].add(id_)
        self._unindexed.clear()
        mine = [self.orders[id_] for id_ in self._ids_by_machine.get(machine, ())]
        return tuple(sorted(mine, key=lambda order: (order.number, order.id)) if len(mine) > 1 else mine)

    def machines_on(self, host: HostName) -> tuple[Machine, ...]:
        """The machines that a host carries, by name."""
        if self._ids_by_host is None:
            self._ids_by_host = defaultdict(list)
            for machine in self.machines.values():
                if machine.host is not None:
                    self._ids_by_host[machine.host].append(machine.id)
        known = dict.fromkeys(self._ids_by_host.get(host, ()))
        there = [self.machines[id_] for id_ in known if id_ in self.machines]
        mine = (machine for machine in there if machine.host == host)
        return tuple(sorted(mine, key=lambda machine: (machine.name.casefold(), machine.id)))

    def changes(self) -> Changes:
        """Return everything to save."""
        base = self.base
        self._release_reserved()
        self._count_incarnations(_changed(base.events, self.events))
        changed: dict[str, Any] = {
            name: _changed(getattr(base, name), getattr(self, name)) for name in _TABLES
        }
        removed: dict[str, Any] = {
            f"removed_{name}": _removed(getattr(base, name), getattr(self, name)) for name in _REMOVABLE
        }
        orders = (each.id for each in changed["orders"])
        machines = (*(each.id for each in changed["machines"]), *removed["removed_machines"])
        changes = Changes(
            now=self.now,
            as_of=base.number,
            defaults=None if self.defaults == base.defaults else self.defaults,
            **changed,
            **removed,
            records=tuple(self._records),
            orders_before={id_: base.orders[id_] for id_ in orders if id_ in base.orders},
            machines_before={id_: base.machines[id_] for id_ in machines if id_ in base.machines},
            wake_all=self._wake_all,
            tallies=self._tallies,
            moves=self._moves,
            promises=tuple(
                MonthlyPromises(project=project, month=month, simulated=simulated, **asdict(counts))
                for (project, month, simulated), counts in self._promises.items()
            ),
        )
        return with_affected(changes, base, groups=self.groups)

    def _release_reserved(self) -> None:
        """Release the reserved hosts of machines that no order moves there any more."""
        for order in _changed(self.base.orders, self.orders):
            known = self.base.orders.get(order.id)
            for step in () if known is None else known.steps:
                if step.state is not StepState.WAITING:
                    continue
                machine = self.machines.get(step.machine)
                if machine is None or step.target is None or machine.bound_for != step.target:
                    continue
                if not any(other.open and _moves(other, machine) for other in self.orders_of(machine.id)):
                    self.put_machine(replace(machine, bound_for=None))

    def take_saved(self, saved: Changes) -> None:
        """Replace relative numbers by those that the store assigned."""
        self._given_after = saved.as_of
        self.orders.update((each.id, each) for each in saved.orders)
        self.events.update((each.id, each) for each in saved.events)
        self.groups.update((each.name, each) for each in saved.groups)

    def given(self, number: int) -> int:
        """Return the number that the store assigned; LookupError before the draft is saved."""
        if self._given_after is None:
            raise LookupError("the store assigns numbers when it saves the draft")
        return given(number, after=self._given_after)

    def _count_incarnations(self, events: Iterable[Event]) -> None:
        """Increase the incarnation of every group whose document changes, by one."""
        changed = {
            event.group for event in events if visible(event) != visible(self.base.events.get(event.id))
        }
        for name in sorted(changed & self.groups.keys()):
            group = self.groups[name]
            saved = self.base.groups.get(name, group)
            self.groups[name] = replace(group, incarnation=saved.incarnation + 1)


def visible(event: Event | None) -> tuple[object, ...] | None:
    """The fields of an event that guests see and that can change; None if it is not listed."""
    if event is None or not event.listed:
        return None
    return (event.status, event.not_before, event.resources)


def _changed(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> tuple[Value, ...]:
    # Most values are the same object, which is cheaper to check than equality.
    return tuple(
        value for key, value in after.items() if (known := before.get(key)) is not value and known != value
    )


def _removed(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> tuple[Key, ...]:
    return tuple(key for key in before if key not in after)


def _moves(order: Order, machine: Machine) -> bool:
    """Whether an order moves a machine, or will, to the host that it is bound for."""
    pending = (StepState.WAITING, StepState.RUNNING)
    mine = (step for step in order.steps if step.machine == machine.id and step.state in pending)
    return any(step.target == machine.bound_for for step in mine)
