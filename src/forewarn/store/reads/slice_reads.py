"""Loading the part of the fleet that a decision needs, with all projects and holds."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sqlalchemy import and_, case, func, not_, select, union_all

from forewarn.core.basic_types import Action, EventType, GroupName, HostName, MachineId, OrderId, ProjectName
from forewarn.core.model.constraints import ArmedDomain, Hold
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.orders.placement import most_placed_at_once, machines_to_place
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_found, one_of
from forewarn.store.reads.capacity import BudgetReads, RoomReads
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.reads.promises import NoticeReads
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, SELECT_GROUPS, Reader, among, chunks
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.stored import EVENTS, HOLDS, HOSTS, MACHINES, ORDERS, PROJECTS

_E, _O, _G = tables.events.c, tables.orders.c, tables.groups.c
_KNOWN = "forewarn.settings"  # in the `info` of a connection
_PROJECTS = PROJECTS.select().order_by(tables.projects.c.name)
_HOLDS = HOLDS.select().order_by(tables.holds.c.at, tables.holds.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    version: str
    projects: Mapping[ProjectName, Project]
    holds: Mapping[str, Hold]


class SettingsReads(Reader):
    """All projects, and all holds that are in force.

    Every decision needs them, and they change seldom. A connection remembers them with their version,
    which the transaction reads anyway.
    """

    def projects(self) -> Mapping[ProjectName, Project]:
        """Return all projects."""
        return self._settings().projects

    def holds(self) -> Mapping[str, Hold]:
        """Return all holds that are in force."""
        return self._settings().holds

    def _settings(self) -> _Settings:
        known: _Settings | None = self._connection.info.get(_KNOWN)
        # A version stands for the same projects and holds for ever, also if its transaction is undone.
        if known is None or known.version != self._meta.settings_version:
            known = _Settings(
                version=self._meta.settings_version,
                projects={each.name: each for each in self._list(PROJECTS.read, _PROJECTS)},
                holds={each.id: each for each in self._list(HOLDS.read, _HOLDS)},
            )
            self._connection.info[_KNOWN] = known
        return known


_HOSTS = among(HOSTS.select(), tables.hosts.c.name)
_MACHINES = among(MACHINES_WITH_HOSTS, tables.machines.c.id)
_CARRIED = among(MACHINES.select(), tables.machines.c.host)
_COMING = among(
    select(tables.machines.c.id).where(tables.machines.c.bound_for.is_not(None)), tables.machines.c.place
)
_ORDERS = among(ORDERS.select(), _O.id)
# Both ways to be concerned run along an index of their own; open orders alone have machines. Were the ids of
# both found by one condition, PostgreSQL might look for all of them anew for each open order.
_NOT_FOUND = not_(one_of(_O.id, key_list("found")))
_ORDERS_AROUND = union_all(
    ORDERS.select().where(_NOT_FOUND, one_of(tables.HOST_OF_OPEN_ORDER, key_list("hosts"))),
    ORDERS.select().where(
        _NOT_FOUND,
        one_found(
            _O.id,
            select(tables.order_machines.c.order_id).where(
                one_of(tables.order_machines.c.machine_id, key_list("machines"))
            ),
        ),
    ),
)
EVENTS_OF_ORDERS = among(EVENTS.select(), _E.order_id).where(tables.IS_LISTED_EVENT)
# Of an update domain of a group: how many events are listed, and what is armed of them (`DomainCounts`).
_IS_ARMED = _E.armed_at.is_not(None)
_IS_FREEZE = and_(_IS_ARMED, _E.type == EventType.FREEZE.value)
_COUNTS = (
    _E.domain,
    func.count(_E.id),
    func.count(_E.armed_at),
    func.count(case((_IS_FREEZE, _E.id))),
    func.sum(case((_IS_FREEZE, func.json_array_length(_E.resources)), else_=0)),
    func.min(case((_IS_ARMED, _E.order_id))),
)
_BY_DOMAIN = select(_E.group_name, *_COUNTS).group_by(_E.group_name, _E.domain)
ALL_DOMAIN_COUNTS = _BY_DOMAIN.where(tables.COUNTED_EVENT)
DOMAIN_COUNTS = among(_BY_DOMAIN, tables.GROUP_OF_LISTED_EVENT).where(tables.COUNTED_TYPE)
# Groups with what is listed and armed of each of their update domains: a row for each of these.
GROUPS_WITH_LISTED = (
    among(SELECT_GROUPS.add_columns(*_COUNTS), _G.name)
    .outerjoin_from(
        tables.groups, tables.events, and_(_G.name == tables.GROUP_OF_LISTED_EVENT, tables.COUNTED_TYPE)
    )
    .group_by(_G.name, _E.domain)
)


class ScopedRuleQueries(Reader):
    """A part of the fleet.

    What is loaded comes in a fixed order, so that both databases lead to the same decisions.
    """

    def __init__(self, transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._notices, self._budgets = NoticeReads(transaction), BudgetReads(transaction)
        self._rooms, self._settings = RoomReads(transaction), SettingsReads(transaction)

    def around(  # noqa: PLR0913 - what a decision may be about
        self,
        *,
        orders: Sequence[OrderId] = (),
        machines: Sequence[MachineId] = (),
        hosts: Sequence[HostName] = (),
        groups: Sequence[GroupName] = (),
        room: bool | None = None,
        homes: Sequence[HostName] = (),
        targets: Sequence[HostName] = (),
    ) -> Slice:
        """Load the part of the fleet that a decision about these needs; unknown ones are left out."""
        named = self._load(ORDERS.read, _ORDERS, {order.upper() for order in orders})
        whole_hosts = {*hosts, *(order.host for order in named if order.host is not None)}
        known_hosts, carried = self._load_carried(whole_hosts)
        single = {machine.lower() for machine in machines} | set(_machines_of(named))
        # A failure waits for those who are on their way to its host, and recovers whoever arrives.
        single |= self._coming_to({order.host for order in named if order.action is Action.FAIL})
        others = self._load_machines(single - carried.keys(), known_hosts)
        machines_by_id = _by_id([*carried.values(), *others])
        orders_by_id = self._orders_around(named, machines_by_id, whole_hosts | known_hosts.keys())
        events = self._load_events(orders_by_id)
        group_names = {*groups, *(machine.group for machine in machines_by_id.values())}
        loaded_groups, counts = self._load_groups(group_names | {event.group for event in events})
        budgets = self._budgets.load(loaded_groups.values())
        part = Slice(
            number=self._meta.number,
            defaults=self._meta.defaults,
            projects=self._load_projects(loaded_groups.values(), machines_by_id.values()),
            hosts=self._with_targets(known_hosts, named, machines_by_id.values(), targets),
            groups=loaded_groups,
            machines=machines_by_id,
            orders=orders_by_id,
            events={event.id: event for event in events},
            listed=counts.listed,
            armed=counts.armed,
            sent=self._notices.first_sent([event.id for event in events]),
            budgets=budgets,
            grace=self._meta.grace,
            slew=self._meta.slew,
            absences=self._meta.absences,
            pace=self._meta.pace,
            holds=self._settings.holds(),
        )
        return self._with_room(part, named, asked=room, homes=(*homes, *targets))

    def _with_room(
        self, part: Slice, named: Sequence[Order], *, asked: bool | None, homes: Sequence[HostName]
    ) -> Slice:
        """Add the room for all machines if that is asked for, else for those that orders may yet place."""
        if asked is False:
            return part
        carried: dict[HostName | None, list[Machine]] = {}
        for machine in part.machines.values():
            carried.setdefault(machine.host, []).append(machine)
        placed_by = [
            (order, machines_to_place(order, carried.get(order.host, ())) & part.machines.keys())
            for order in named
        ]
        placed = {id_ for _, its in placed_by for id_ in its}
        movers = [each for id_, each in part.machines.items() if asked or id_ in placed]
        if not movers and not asked:
            return part
        # A host is judged by all that a machine stands beside.
        near = {step.group for order, its in placed_by if its for step in order.steps}
        near |= {machine.group for machine in movers}
        groups = [group for name, group in part.groups.items() if asked or name in near]
        sources = sorted({each.host for each in movers if each.host is not None and each.host in part.hosts})
        room = self._rooms.for_machines(
            movers,
            groups,
            part.budgets,
            sources=[part.hosts[name] for name in sources],
            homes={*homes, *(home for order, its in placed_by if asked or its for home in _homes_of(order))},
            at_most=None if asked else sum(most_placed_at_once(part, order, its) for order, its in placed_by),
        )
        return replace(part, room=room)

    def _load_carried(
        self, names: Iterable[HostName]
    ) -> tuple[dict[HostName, Host], dict[MachineId, Machine]]:
        """Load hosts and all that they carry."""
        wanted = list(names)
        hosts = {host.name: host for host in self._load(HOSTS.read, _HOSTS, wanted)}
        return hosts, {machine.id: machine for machine in self._load(MACHINES.read, _CARRIED, wanted)}

    def _load_machines(
        self, ids: Collection[MachineId | str], hosts: dict[HostName, Host]
    ) -> Sequence[Machine]:
        """Load machines, and add the hosts that carry them to those known."""
        unknown = [id_ for id_ in ids if id_ not in self._transaction.found]
        for row in self._among(_MACHINES, unknown):
            self._transaction.read_machine(row)
        found = [self._transaction.found[MachineId(id_)] for id_ in ids if id_ in self._transaction.found]
        hosts.update((host.name, host) for _, host in found if host is not None)
        return [machine for machine, _ in found]

    def _coming_to(self, hosts: Collection[HostName | None]) -> set[MachineId]:
        return {row[0] for row in self._among(_COMING, (host for host in hosts if host is not None))}

    def _load_events(self, orders: Iterable[OrderId]) -> Sequence[Event]:
        rows = self._known_or(self._transaction.loaded.events, EVENTS_OF_ORDERS, orders)
        found = [EVENTS.read(row) for row in rows]
        return sorted(found, key=lambda event: (event.number, event.id))

    def _orders_around(
        self, named: Iterable[Order], machines: Iterable[MachineId], hosts: Iterable[HostName]
    ) -> dict[OrderId, Order]:
        found = {order.id: order for order in named}
        keys = [("hosts", host) for host in hosts] + [("machines", machine) for machine in machines]
        known = self._transaction.loaded.orders
        for row in chain.from_iterable(known.get(key, ()) for key in keys):
            found.setdefault(row[0], ORDERS.read(row))
        for some in chunks(key for key in keys if key not in known):
            values = {of: [key for name, key in some if name == of] for of in ("hosts", "machines")}
            for row in self._all(_ORDERS_AROUND, {**values, "found": [order.upper() for order in found]}):
                if row[0] not in found:
                    order = ORDERS.read(row)
                    found[order.id] = order
        return dict(sorted(found.items(), key=lambda item: (item[1].number, item[0])))

    def _with_targets(
        self,
        hosts: dict[HostName, Host],
        named: Iterable[Order],
        machines: Iterable[Machine],
        asked: Iterable[HostName],
    ) -> dict[HostName, Host]:
        """Add the hosts that steps of orders move machines to, and those that machines are bound for."""
        bound = {machine.bound_for for machine in machines if machine.bound_for is not None}
        targets = {*_targets_of(named), *bound, *asked} - hosts.keys()
        hosts |= {host.name: host for host in self._load(HOSTS.read, _HOSTS, targets)}
        return dict(sorted(hosts.items()))

    def _load_groups(self, names: Iterable[GroupName]) -> tuple[dict[GroupName, Group], "DomainCounts"]:
        """Load groups, and count the events of their update domains."""
        groups: dict[GroupName, Group] = {}
        counts = DomainCounts()
        for row in self._known_or(self._transaction.loaded.groups, GROUPS_WITH_LISTED, names):
            if row[0] not in groups:
                group = self._transaction.read_group(row)
                groups[group.name] = group
            counts.take(row)
        return dict(sorted(groups.items())), counts

    def _load_projects(
        self, groups: Iterable[Group], machines: Iterable[Machine]
    ) -> dict[ProjectName, Project]:
        names = {group.project for group in groups} | {machine.project for machine in machines}
        return {name: each for name, each in self._settings.projects().items() if name in names}


def _machines_of(orders: Iterable[Order]) -> Iterator[MachineId]:
    for order in orders:
        if order.machine is not None:
            yield order.machine
        yield from (step.machine for step in order.steps)


def _targets_of(orders: Iterable[Order]) -> Iterator[HostName]:
    for order in orders:
        yield from (step.target for step in order.steps if step.target is not None)
        if order.terms.to is not None:
            yield order.terms.to


def _homes_of(order: Order) -> tuple[HostName, ...]:
    """Return where an order's machines had better go, or must go."""
    return order.terms.homes if order.terms.to is None else (*order.terms.homes, order.terms.to)


def _by_id(machines: Iterable[Machine]) -> dict[MachineId, Machine]:
    ordered = sorted(machines, key=lambda machine: (machine.name.casefold(), machine.id))
    return {machine.id: machine for machine in ordered}


class DomainCounts:
    """The events of update domains, by group: how many are listed, and what is armed of them."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.listed: dict[GroupName, dict[int, int]] = {}
        self.armed: dict[GroupName, dict[int, ArmedDomain]] = {}
        for row in rows:
            self.take(row)

    def take(self, row: Row) -> None:
        """Take a row that begins with the name of a group, and ends with the counts of an update domain."""
        domain, listed, armed, freezes, frozen, order = row[-len(_COUNTS) :]
        if listed:
            self.listed.setdefault(row[0], {})[domain] = listed
        if armed:
            counted = ArmedDomain(events=armed, freezes=freezes, frozen=int(frozen), order=order)
            self.armed.setdefault(row[0], {})[domain] = counted
