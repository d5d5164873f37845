"""A working copy of part of the fleet: what the rules read, and what they have changed so far.

A draft holds no policy. It answers with the newest version of each thing, numbers what is new relative to
all that is saved, and at the end gives as one value what is to be saved.
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
from forewarn.core.model.changes import UNSAVED, Changes, given, with_woken
from forewarn.core.model.constraints import ArmedDomain, Budget, keeps_others_away
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import NO_MOVES, MovePace
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import MonthlyPromises, PromiseCounts, Record, month_of
from forewarn.core.model.slice import Slice
from forewarn.core.webhook_rules import Webhook

About: TypeAlias = Machine | Event | Order | Group | Host | Project | Webhook | None

_NONE_ARMED = ArmedDomain()

Key = TypeVar("Key")
Value = TypeVar("Value")


class RoomNotLoaded(LookupError):
    """A machine is to be given a host, and it was not loaded how full hosts are."""


class Draft:
    """What the rules read and change."""

    def __init__(self, base: Slice, *, now: datetime, new_id: Callable[[], str]) -> None:
        """Start from what is saved; `new_id` makes upper-case GUIDs."""
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
        # Where to look: what is found there may have left since. Made when it is first needed.
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
        """The number of the newest record, relative to what is saved."""
        return UNSAVED + len(self._records)

    @property
    def room(self) -> dict[HostName, Room]:
        """How full the emptiest sound hosts are, counting what this draft moves."""
        if self._room is None:
            raise RoomNotLoaded("a machine is to be moved, but the room for it was not loaded")
        return self._room

    @property
    def known_room(self) -> Mapping[HostName, Room]:
        """The same, empty where no room was loaded."""
        return {} if self._room is None else self._room

    def record(
        self, kind: Kind, about: About, *, order: OrderId | None = None, by: str = "", reason: str = ""
    ) -> int:
        """Write a line of the history about a thing, and return its number."""
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
        """Add a move that is over to how long moves take in this fleet."""
        move = MovePace(expected=expected.total_seconds(), taken=taken.total_seconds())
        self._moves = self._moves.plus(move)

    def count(self, kind: Kind, machines: int) -> None:
        """Add the machines that a record names to the sum of its kind."""
        self._tallies[kind] = self._tallies.get(kind, 0) + machines

    def count_promises(self, event: Event, counts: PromiseCounts) -> None:
        """Add what has become of an event's promises to what is counted of its project and this month."""
        simulated = self.orders[event.order].simulated
        self._count_promises(self.groups[event.group].project, counts, simulated=simulated)

    def _count_promises(self, project: ProjectName, counts: PromiseCounts, *, simulated: bool) -> None:
        key = (project, month_of(self.now), simulated)
        self._promises[key] = self._promises.get(key, PromiseCounts()).plus(counts)

    def _names_of(self, about: About) -> dict[str, Any]:
        """Return what a record says of the thing that it is about."""
        match about:
            case Machine(name=name, project=project, group=group, host=host):
                return {"project": project, "group": group, "machine": name, "host": host}
            case Event(id=event, group=group, order=order, resources=named):
                project, machine = self.groups[group].project, named[0].name if len(named) == 1 else None
                return {
                    "project": project,
                    "group": group,
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
            # Not the project whose records it is sent: where operators send them is not its business.
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
        """Add or replace a machine; of one that has left its host it is kept where it was."""
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
        """Have the engine look at these orders now."""
        for order in orders:
            known = self.orders[order.id]
            if known.due_at != self.now:
                self.put_order(replace(known, due_at=self.now))

    def wake_all(self) -> None:
        """Have the engine look at every open order, also those that are not loaded here."""
        self._wake_all = True

    def listed_domains(self, group: GroupName) -> tuple[int, ...]:
        """The update domains with a listed event of the group, lowest first; but hints."""
        return tuple(sorted(domain for domain, count in self._listed.get(group, {}).items() if count))

    def armed_domains(self, group: GroupName, *, but_of: OrderId | None = None) -> dict[int, ArmedDomain]:
        """The update domains with an armed event of the group, lowest first; but those of one order."""
        armed = dict(self._armed.get(group, {}))
        for event in () if but_of is None else self.events_of(but_of):
            if event.group == group and event.update_domain in armed:
                armed[event.update_domain] = armed[event.update_domain].minus(event)
        return {domain: armed[domain] for domain in sorted(armed) if armed[domain].events}

    def budgets(self, groups: Iterable[GroupName]) -> dict[GroupName, Budget]:
        """Return the budgets of those groups that have one, counting what this draft has announced."""
        asked = sorted(name for name in groups if self.groups[name].policy.budget)
        return {name: self._budget(name) for name in asked if name in self.base.budgets}

    def _budget(self, group: GroupName) -> Budget:
        budget = self.base.budgets[group]
        mine = (event for event in self.events.values() if event.group == group and keeps_others_away(event))
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
        """The orders that are about a machine or have, or had, a step of it; oldest first."""
        for id_ in self._unindexed:
            order = self.orders[id_]
            for named in (order.machine, *[step.machine for step in order.steps]):
                if named is not None:
                    self._ids_by_machine[named].add(id_)
        self._unindexed.clear()
        mine = [self.orders[id_] for id_ in self._ids_by_machine.get(machine, ())]
        return tuple(sorted(mine, key=lambda order: (order.number, order.id)) if len(mine) > 1 else mine)

    def machines_on(self, host: HostName) -> tuple[Machine, ...]:
        """The machines a host carries, by name."""
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
        """Return what is to be saved."""
        base = self.base
        self._release_reserved()
        events, machines = _changed(base.events, self.events), _changed(base.machines, self.machines)
        orders, removed_machines = _changed(base.orders, self.orders), _removed(base.machines, self.machines)
        self._count_incarnations(events)
        groups, hosts = _changed(base.groups, self.groups), _changed(base.hosts, self.hosts)
        changes = Changes(
            now=self.now,
            as_of=base.number,
            defaults=None if self.defaults == base.defaults else self.defaults,
            projects=_changed(base.projects, self.projects),
            hosts=hosts,
            groups=groups,
            machines=machines,
            orders=orders,
            events=events,
            records=tuple(self._records),
            holds=_changed(base.holds, self.holds),
            removed_holds=_removed(base.holds, self.holds),
            removed_projects=_removed(base.projects, self.projects),
            removed_hosts=_removed(base.hosts, self.hosts),
            removed_groups=_removed(base.groups, self.groups),
            removed_machines=removed_machines,
            orders_before={each.id: base.orders[each.id] for each in orders if each.id in base.orders},
            machines_before={
                id_: base.machines[id_]
                for id_ in (*(each.id for each in machines), *removed_machines)
                if id_ in base.machines
            },
            wake_all=self._wake_all,
            tallies=self._tallies,
            moves=self._moves,
            promises=tuple(
                MonthlyPromises(project=project, month=month, simulated=simulated, **asdict(counts))
                for (project, month, simulated), counts in self._promises.items()
            ),
        )
        return with_woken(changes, base, groups=self.groups)

    def _release_reserved(self) -> None:
        """Let machines be bound for nowhere whose orders no longer move them where a place was reserved."""
        for order in _changed(self.base.orders, self.orders):
            known = self.base.orders.get(order.id)
            waited = (
                [] if known is None else [step for step in known.steps if step.state is StepState.WAITING]
            )
            for step in waited:
                machine = self.machines.get(step.machine)
                if machine is None or step.target is None or machine.bound_for != step.target:
                    continue
                if not any(other.open and _moves(other, machine) for other in self.orders_of(machine.id)):
                    self.put_machine(replace(machine, bound_for=None))

    def take_saved(self, saved: Changes) -> None:
        """Take over the numbers that the store has given to what is new."""
        self._given_after = saved.as_of
        self.orders.update((each.id, each) for each in saved.orders)
        self.events.update((each.id, each) for each in saved.events)
        self.groups.update((each.name, each) for each in saved.groups)

    def given(self, number: int) -> int:
        """Return the number that the store has given to something; only once the draft is saved."""
        if self._given_after is None:
            raise LookupError("no numbers are given before the draft is saved")
        return given(number, after=self._given_after)

    def _count_incarnations(self, events: Iterable[Event]) -> None:
        """Move the incarnation of every group whose guests would see a difference, by one."""
        seen_anew = {
            event.group for event in events if visible(event) != visible(self.base.events.get(event.id))
        }
        for name in sorted(seen_anew & self.groups.keys()):
            group = self.groups[name]
            self.groups[name] = replace(group, incarnation=self._saved_incarnation(group) + 1)

    def _saved_incarnation(self, group: Group) -> int:
        saved = self.base.groups.get(group.name)
        return group.incarnation if saved is None else saved.incarnation


def visible(event: Event | None) -> tuple[object, ...] | None:
    """What a guest sees of an event that can change; None if nothing. An approval alone is not seen."""
    if event is None or not event.listed:
        return None
    return (event.status, event.not_before, event.resources)


def _changed(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> tuple[Value, ...]:
    # Most are the same object, and those need not be compared.
    return tuple(
        value for key, value in after.items() if (known := before.get(key)) is not value and known != value
    )


def _removed(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> tuple[Key, ...]:
    return tuple(key for key in before if key not in after)


def _moves(order: Order, machine: Machine) -> bool:
    """Return whether an order moves a machine, or will, to where that is bound."""
    pending = (StepState.WAITING, StepState.RUNNING)
    mine = (step for step in order.steps if step.machine == machine.id and step.state in pending)
    return any(step.target == machine.bound_for for step in mine)
