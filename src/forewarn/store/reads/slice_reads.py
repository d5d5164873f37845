"""Loading the part of the fleet that a decision needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeVar

from sqlalchemy import func, select

from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.words import GroupName, HostName, MachineId, OrderId, ProjectName
from forewarn.store import tables
from forewarn.store.reads.budget_reads import BudgetReads
from forewarn.store.reads.notice_reads import NoticeReads
from forewarn.store.reads.reader import SELECT_GROUPS, among
from forewarn.store.reads.room_reads import RoomReads
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.stored import EVENTS, HOLDS, HOSTS, MACHINES, ORDERS, PROJECTS

Key = TypeVar("Key")
Value = TypeVar("Value")

_E = tables.events.c
_PROJECTS = among(PROJECTS.select(), tables.projects.c.name)
_HOSTS = among(HOSTS.select(), tables.hosts.c.name)
_GROUPS = among(SELECT_GROUPS, tables.groups.c.name)
_MACHINES = among(MACHINES.select(), tables.machines.c.id)
_MACHINES_ON = among(MACHINES.select(), tables.machines.c.host)
_ORDERS = among(ORDERS.select(), tables.orders.c.id)
_ORDERS_ON = among(ORDERS.select(), tables.orders.c.host).where(tables.OPEN_ORDER)
_TOUCHING = among(select(tables.order_machines.c.order_id), tables.order_machines.c.machine_id)
_HOLDS = HOLDS.select().order_by(tables.holds.c.at, tables.holds.c.id)
_EVENTS = among(EVENTS.select(), _E.order_id).where(tables.LISTED_EVENT)
LISTED_COUNTS = (
    select(_E.group_name, _E.domain, func.count())
    .where(tables.COUNTED_EVENT)
    .group_by(_E.group_name, _E.domain)
)
_LISTED_COUNTS_OF = among(LISTED_COUNTS, _E.group_name)


class ReadLater(Mapping[Key, Value]):
    """What few decisions need: read when first asked, which must be while the snapshot is open."""

    def __init__(self, read: Callable[[], Mapping[Key, Value]]) -> None:
        self._read = read

    @cached_property
    def _all(self) -> Mapping[Key, Value]:
        return self._read()

    def __getitem__(self, key: Key) -> Value:
        return self._all[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class SliceReads(NoticeReads, BudgetReads, RoomReads):
    """A part of the fleet.

    What is loaded comes in a fixed order, so that both databases lead to the same decisions.
    """

    def around(
        self,
        *,
        orders: Sequence[OrderId] = (),
        machines: Sequence[MachineId] = (),
        hosts: Sequence[HostName] = (),
        groups: Sequence[GroupName] = (),
    ) -> Slice:
        """Load the part of the fleet that a decision about these needs; unknown ones are left out."""
        named = self._load(ORDERS.read, _ORDERS, {order.upper() for order in orders})
        whole_hosts = {*hosts, *(order.host for order in named if order.host is not None)}
        carried = _by_id(self._load(MACHINES.read, _MACHINES_ON, whole_hosts))
        single = {machine.lower() for machine in machines} | set(_machines_of(named))
        others = _by_id(self._load(MACHINES.read, _MACHINES, single - carried.keys()))
        machines_by_id = _by_id([*carried.values(), *others.values()])
        all_hosts = whole_hosts | {machine.host for machine in others.values() if machine.host is not None}
        orders_by_id = self._orders_around(named, machines_by_id, all_hosts)
        events = sorted(
            self._load(EVENTS.read, _EVENTS, orders_by_id), key=lambda event: (event.number, event.id)
        )
        group_names = {*groups, *(machine.group for machine in machines_by_id.values())}
        loaded_groups = self._load_groups(group_names | {event.group for event in events})
        budgets = ReadLater(partial(self._load_budgets, list(loaded_groups.values())))
        return Slice(
            number=self._meta.number,
            defaults=self._meta.defaults,
            projects=self._load_projects(loaded_groups.values(), machines_by_id.values()),
            hosts=self._load_hosts(all_hosts | set(_targets_of(named))),
            groups=loaded_groups,
            machines=machines_by_id,
            orders=orders_by_id,
            events={event.id: event for event in events},
            listed=by_group(self._among(_LISTED_COUNTS_OF, loaded_groups)),
            room=ReadLater(
                partial(
                    self._room_for,
                    list(machines_by_id.values()),
                    list(loaded_groups.values()),
                    budgets,
                    hosts=len(all_hosts),
                )
            ),
            sent=ReadLater(partial(self.notices, [event.id for event in events])),
            budgets=budgets,
            grace=self._meta.grace,
            holds=self._load_holds(),
        )

    def _orders_around(
        self, named: Iterable[Order], machines: Iterable[MachineId], hosts: Iterable[HostName]
    ) -> dict[OrderId, Order]:
        found = {order.id: order for order in named}
        found |= {order.id: order for order in self._load(ORDERS.read, _ORDERS_ON, hosts)}
        touching = {order for (order,) in self._among(_TOUCHING, machines)} - found.keys()
        found |= {order.id: order for order in self._load(ORDERS.read, _ORDERS, touching)}
        return dict(sorted(found.items(), key=lambda item: (item[1].number, item[0])))

    def _load_hosts(self, names: Iterable[HostName]) -> dict[HostName, Host]:
        return {host.name: host for host in self._load(HOSTS.read, _HOSTS, sorted(names))}

    def _load_groups(self, names: Iterable[GroupName]) -> dict[GroupName, Group]:
        found = self._load(self._group, _GROUPS, names)
        return {group.name: group for group in sorted(found, key=lambda group: group.name)}

    def _load_projects(
        self, groups: Iterable[Group], machines: Iterable[Machine]
    ) -> dict[ProjectName, Project]:
        names = {group.project for group in groups} | {machine.project for machine in machines}
        return {project.name: project for project in self._load(PROJECTS.read, _PROJECTS, names)}

    def _load_holds(self) -> dict[str, Hold]:
        return {hold.id: hold for hold in self._list(HOLDS.read, _HOLDS)}


def _machines_of(orders: Iterable[Order]) -> Iterator[MachineId]:
    for order in orders:
        if order.machine is not None:
            yield order.machine
        yield from (step.machine for step in order.steps)


def _targets_of(orders: Iterable[Order]) -> Iterator[HostName]:
    for order in orders:
        yield from (step.target for step in order.steps if step.target is not None)


def _by_id(machines: Iterable[Machine]) -> dict[MachineId, Machine]:
    ordered = sorted(machines, key=lambda machine: (machine.name.casefold(), machine.id))
    return {machine.id: machine for machine in ordered}


def by_group(counts: Iterable[Row]) -> dict[GroupName, dict[int, int]]:
    """Arrange counts by group and update domain."""
    found: dict[GroupName, dict[int, int]] = {}
    for group, update_domain, count in counts:
        found.setdefault(group, {})[update_domain] = count
    return found
