"""Slices: the part of the fleet that a decision needs, with all projects and holds."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sqlalchemy import and_, case, func, not_, select, union_all

from forewarn.core.basic_types import Action, EventType, GroupName, HostName, MachineId, OrderId, ProjectName
from forewarn.core.model.constraints import ArmedDomain, Hold
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.orders.placement import machines_to_place, most_placed_at_once
from forewarn.store import tables
from forewarn.store.key_lists import chunks, for_keys, key_list, one_found, one_of
from forewarn.store.reads.capacity import load_budgets, load_rooms
from forewarn.store.reads.notices import first_sent
from forewarn.store.reads.open_transaction import OpenTransaction, Queries
from forewarn.store.reads.statements import MACHINES_WITH_HOSTS, SELECT_GROUPS
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.stored import EVENTS, HOLDS, HOSTS, MACHINES, ORDERS, PROJECTS

_E, _O, _G = tables.events.c, tables.orders.c, tables.groups.c
_SETTINGS = "forewarn.settings"  # key in the `info` of a connection
_PROJECTS = PROJECTS.select().order_by(tables.projects.c.name)
_HOLDS = HOLDS.select().order_by(tables.holds.c.at, tables.holds.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsAndHolds:
    """All projects, and all holds in force."""

    version: str
    projects: Mapping[ProjectName, Project]
    holds: Mapping[str, Hold]


def load_settings(tx: OpenTransaction) -> ProjectsAndHolds:
    """Load all projects and all holds in force.

    Every decision needs them, and they rarely change. So the connection caches them with their version, which
    each transaction reads anyway.
    """
    cached: ProjectsAndHolds | None = tx.connection.info.get(_SETTINGS)
    # A version is never used again, not even after a rollback.
    if cached is None or cached.version != tx.meta.settings_version:
        cached = ProjectsAndHolds(
            version=tx.meta.settings_version,
            projects={each.name: each for each in tx.read_all(PROJECTS.read, _PROJECTS)},
            holds={each.id: each for each in tx.read_all(HOLDS.read, _HOLDS)},
        )
        tx.connection.info[_SETTINGS] = cached
    return cached


_HOSTS = for_keys(HOSTS.select(), tables.hosts.c.name)
_MACHINES = for_keys(MACHINES_WITH_HOSTS, tables.machines.c.id)
_CARRIED = for_keys(MACHINES.select(), tables.machines.c.host)
_COMING = for_keys(
    select(tables.machines.c.id).where(tables.machines.c.bound_for.is_not(None)), tables.machines.c.place
)
_ORDERS = for_keys(ORDERS.select(), _O.id)
# Each of the two queries uses an index of its own. With one condition for both, PostgreSQL might search for
# all keys again for each open order. Only open orders have rows in `order_machines`.
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
EVENTS_OF_ORDERS = for_keys(EVENTS.select(), _E.order_id).where(tables.IS_LISTED_EVENT)
# The listed and the armed events of an update domain of a group (`DomainCounts`).
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
DOMAIN_COUNTS = for_keys(_BY_DOMAIN, tables.GROUP_OF_LISTED_EVENT).where(tables.COUNTED_TYPE)
# Groups with the listed and the armed events of each update domain: a row for each update domain.
GROUPS_WITH_LISTED = (
    for_keys(SELECT_GROUPS.add_columns(*_COUNTS), _G.name)
    .outerjoin_from(
        tables.groups, tables.events, and_(_G.name == tables.GROUP_OF_LISTED_EVENT, tables.COUNTED_TYPE)
    )
    .group_by(_G.name, _E.domain)
)


class ScopedRuleQueries(Queries):
    """The input of decisions on a part of the fleet.

    Everything is loaded in a fixed order, so that both databases lead to the same decisions.
    """

    def around(  # noqa: PLR0913 - the kinds of things that a decision may concern
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
        """Load the part of the fleet that a decision about these needs; unknown ids are ignored."""
        named = self._tx.load(ORDERS.read, _ORDERS, {order.upper() for order in orders})
        whole_hosts = {*hosts, *(order.host for order in named if order.host is not None)}
        known_hosts = {host.name: host for host in self._tx.load(HOSTS.read, _HOSTS, whole_hosts)}
        carried = {machine.id: machine for machine in self._tx.load(MACHINES.read, _CARRIED, whole_hosts)}
        single = {machine.lower() for machine in machines} | {
            machine
            for order in named
            for machine in (order.machine, *(step.machine for step in order.steps))
            if machine is not None
        }
        # The failure of a host waits for machines that are moving to it, and recovers those that arrive.
        failed = {order.host for order in named if order.action is Action.FAIL and order.host is not None}
        single |= {row[0] for row in self._tx.rows_for(_COMING, failed)}
        others = self._load_machines(single - carried.keys(), known_hosts)
        all_machines = sorted(
            (*carried.values(), *others), key=lambda machine: (machine.name.casefold(), machine.id)
        )
        machines_by_id = {machine.id: machine for machine in all_machines}
        orders_by_id = self._orders_around(named, machines_by_id, whole_hosts | known_hosts.keys())
        event_rows = self._tx.prefetched_rows(
            self._tx.batch.prefetched.events, EVENTS_OF_ORDERS, orders_by_id
        )
        events = sorted(map(EVENTS.read, event_rows), key=lambda event: (event.number, event.id))
        group_names = {*groups, *(machine.group for machine in machines_by_id.values())}
        loaded_groups, counts = self._load_groups(group_names | {event.group for event in events})
        settings = load_settings(self._tx)
        project_names = {group.project for group in loaded_groups.values()}
        project_names |= {machine.project for machine in machines_by_id.values()}
        part = Slice(
            number=self._tx.meta.number,
            defaults=self._tx.meta.defaults,
            projects={name: each for name, each in settings.projects.items() if name in project_names},
            hosts=self._with_targets(known_hosts, named, machines_by_id.values(), targets),
            groups=loaded_groups,
            machines=machines_by_id,
            orders=orders_by_id,
            events={event.id: event for event in events},
            listed=counts.listed,
            armed=counts.armed,
            sent=first_sent(self._tx, [event.id for event in events]),
            budgets=load_budgets(self._tx, loaded_groups.values()),
            grace=self._tx.meta.grace,
            slew=self._tx.meta.slew,
            absences=self._tx.meta.absences,
            pace=self._tx.meta.pace,
            holds=settings.holds,
        )
        return self._with_room(part, named, asked=room, homes=(*homes, *targets))

    def _with_room(
        self, part: Slice, named: Sequence[Order], *, asked: bool | None, homes: Sequence[HostName]
    ) -> Slice:
        """Add the room for all machines if asked, or for the machines that orders may still place."""
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
        # Room on a host depends on the groups of all machines that the order touches.
        near = {step.group for order, its in placed_by if its for step in order.steps}
        near |= {machine.group for machine in movers}
        groups = [group for name, group in part.groups.items() if asked or name in near]
        sources = sorted({each.host for each in movers if each.host is not None and each.host in part.hosts})
        room = load_rooms(
            self._tx,
            movers,
            groups,
            part.budgets,
            sources=[part.hosts[name] for name in sources],
            homes={*homes, *(home for order, its in placed_by if asked or its for home in _homes_of(order))},
            at_most=None if asked else sum(most_placed_at_once(part, order, its) for order, its in placed_by),
        )
        return replace(part, room=room)

    def _load_machines(
        self, ids: Collection[MachineId | str], hosts: dict[HostName, Host]
    ) -> Sequence[Machine]:
        """Load machines, and add their hosts to the known hosts."""
        unknown = [id_ for id_ in ids if id_ not in self._tx.found]
        for row in self._tx.rows_for(_MACHINES, unknown):
            self._tx.read_machine(row)
        found = [self._tx.found[MachineId(id_)] for id_ in ids if id_ in self._tx.found]
        hosts.update((host.name, host) for _, host in found if host is not None)
        return [machine for machine, _ in found]

    def _orders_around(
        self, named: Iterable[Order], machines: Iterable[MachineId], hosts: Iterable[HostName]
    ) -> dict[OrderId, Order]:
        found = {order.id: order for order in named}
        keys = [("hosts", host) for host in hosts] + [("machines", machine) for machine in machines]
        known = self._tx.batch.prefetched.orders
        for row in chain.from_iterable(known.get(key, ()) for key in keys):
            found.setdefault(row[0], ORDERS.read(row))
        for some in chunks(key for key in keys if key not in known):
            values = {of: [key for name, key in some if name == of] for of in ("hosts", "machines")}
            for row in self._tx.rows(_ORDERS_AROUND, {**values, "found": [order.upper() for order in found]}):
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
        """Add the hosts that orders or machines move to."""
        targets = {*asked, *(machine.bound_for for machine in machines)}
        for order in named:
            targets |= {order.terms.to, *(step.target for step in order.steps)}
        wanted = {host for host in targets if host is not None} - hosts.keys()
        hosts |= {host.name: host for host in self._tx.load(HOSTS.read, _HOSTS, wanted)}
        return dict(sorted(hosts.items()))

    def _load_groups(self, names: Iterable[GroupName]) -> tuple[dict[GroupName, Group], "DomainCounts"]:
        """Load groups, and count the events of their update domains."""
        groups: dict[GroupName, Group] = {}
        counts = DomainCounts()
        for row in self._tx.prefetched_rows(self._tx.batch.prefetched.groups, GROUPS_WITH_LISTED, names):
            if row[0] not in groups:
                group = self._tx.read_group(row)
                groups[group.name] = group
            counts.take(row)
        return dict(sorted(groups.items())), counts


def _homes_of(order: Order) -> tuple[HostName, ...]:
    """Return the hosts that the machines of an order should or must move to."""
    return order.terms.homes if order.terms.to is None else (*order.terms.homes, order.terms.to)


class DomainCounts:
    """The listed and the armed events of each update domain, by group."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.listed: dict[GroupName, dict[int, int]] = {}
        self.armed: dict[GroupName, dict[int, ArmedDomain]] = {}
        for row in rows:
            self.take(row)

    def take(self, row: Row) -> None:
        """Add a row that begins with the name of a group and ends with the counts of an update domain."""
        domain, listed, armed, freezes, frozen, order = row[-len(_COUNTS) :]
        if listed:
            self.listed.setdefault(row[0], {})[domain] = listed
        if armed:
            counted = ArmedDomain(events=armed, freezes=freezes, frozen=int(frozen), order=order)
            self.armed.setdefault(row[0], {})[domain] = counted
