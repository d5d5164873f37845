"""Reading what no project has a share in: the whole fleet, all orders and events, the store itself."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import case, func, select

from forewarn.control.ports.store import HOLD_REACHES
from forewarn.core.model.absence import Absence
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.hold import Grace
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.service_time import TimeKind
from forewarn.core.model.slice import Slice
from forewarn.core.words import (
    EventId,
    EventStatus,
    GroupName,
    HostName,
    Kind,
    MachineId,
    OrderId,
)
from forewarn.store import tables
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, SELECT_GROUPS, among
from forewarn.store.reads.slice_reads import LISTED_COUNTS, SliceReads, by_group
from forewarn.store.reads.state_counts import StateCounts
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS, PROJECTS
from forewarn.store.rows.times import moment_or_none

_M, _O, _E, _H = tables.machines.c, tables.orders.c, tables.events.c, tables.hosts.c
_EVENTS = among(EVENTS.select(), _E.id)
_EVENTS_OF_ORDERS = among(EVENTS.select(), _E.order_id)
_ORDERS = among(ORDERS.select(), _O.id)
_OPEN_ORDERS = among(select(_O.id), _O.id).where(tables.OPEN_ORDER)
# What was never counted is shown as 0, or a metric would begin in the middle.
_COUNTED = {kind.value: 0 for kind in (Kind.NOTICE_LATE, Kind.NOTICE_NEVER, Kind.PROMISE_BROKEN)}
_HOLD_REACH = case(
    (tables.holds.c.host.is_not(None), "host"),
    (tables.holds.c.project.is_not(None), "project"),
    else_="fleet",
)


class UnscopedReads(SliceReads, StateCounts):
    """What can be asked for the whole fleet alone."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        orders = ORDERS.select().where(tables.OPEN_ORDER).order_by(tables.orders.c.number)
        by_name = MACHINES.select().order_by(tables.machines.c.project, tables.machines.c.key)
        listed = EVENTS.select().where(tables.LISTED_EVENT).order_by(_E.number, _E.id)
        hosts = self._list(HOSTS.read, HOSTS.select().order_by(tables.hosts.c.name))
        groups = self._list(self._group, SELECT_GROUPS.order_by(tables.groups.c.name))
        projects = self._list(PROJECTS.read, PROJECTS.select().order_by(tables.projects.c.name))
        machines = self._list(MACHINES.read, by_name)
        events = self._list(EVENTS.read, listed)
        budgets = self._load_budgets(groups)
        return Slice(
            number=self._meta.number,
            defaults=self._meta.defaults,
            projects={project.name: project for project in projects},
            hosts={host.name: host for host in hosts},
            groups={group.name: group for group in groups},
            machines={machine.id: machine for machine in machines},
            orders={order.id: order for order in self._list(ORDERS.read, orders)},
            events={event.id: event for event in events},
            listed=by_group(self._all(LISTED_COUNTS)),
            room=self._room_for(machines, groups, budgets, hosts=len(hosts)),
            budgets=budgets,
            grace=self._meta.grace,
            holds=self._all_holds(),
        )

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        return self._find(self._take_found, MACHINES_WITH_HOSTS.where(_M.id == machine.lower()))

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        return {order.id: order for order in self._load(ORDERS.read, _ORDERS, orders)}

    def events_of_orders(self, orders: Sequence[OrderId]) -> Sequence[Event]:
        """List all events of some orders, over ones too, by creation."""
        found = self._load(EVENTS.read, _EVENTS_OF_ORDERS, {order.upper() for order in orders})
        return sorted(found, key=lambda event: (event.number, event.id))

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ids = sorted({order.upper() for order in among})
        return frozenset(order for (order,) in self._among(_OPEN_ORDERS, ids))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ids = {event.upper() for event in among}
        found = self._load(EVENTS.read, _EVENTS.where(_E.group_name == group), ids)
        return sorted(found, key=lambda event: (event.number, event.id))

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders and listed events by state."""
        return {
            "machines": self._machine_states(),
            "hosts": self._host_states(),
            "orders": self._order_states(),
            "events": self._event_statuses(),
            "rollouts": self._rollout_states(),
        }

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by what they reach."""
        return self._count_by(_HOLD_REACH, HOLD_REACHES)

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        awaited = tables.COUNTED_EVENT, _E.status == EventStatus.SCHEDULED.value
        # In the order of its index, of which this reads one row.
        first = select(_E.not_before).where(*awaited).order_by(_E.not_before).limit(1)
        return moment_or_none(self._connection.scalar(first))

    def host_drivers(self) -> HostDrivers:
        """Return who does the work on which host."""
        declared = select(_H.name, _H.driver).where(tables.OWN_DRIVER)
        own = {HostName(name): driver for name, driver in self._all(declared)}
        return HostDrivers(defaults=self._meta.defaults, own=own)

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by who does the work on them."""
        own = select(_H.driver, func.count()).where(tables.OWN_DRIVER).group_by(_H.driver)
        declared: dict[str, int] = dict(map(tuple, self._all(own)))
        counted: dict[str, int] = {self._meta.defaults.driver_of(None): 0} | declared
        hosts = self._all(select(func.count()).select_from(tables.hosts))[0][0]
        counted[self._meta.defaults.driver_of(None)] += hosts - sum(declared.values())
        return counted

    def reached(self) -> datetime | None:
        """Return the service time that has been reached; None in a new store."""
        return self._meta.reached

    def time_kind(self) -> TimeKind | None:
        """Return whose time the store lives in; None if that was not kept yet."""
        return self._meta.time_kind

    def backup_of(self) -> datetime | None:
        """Return the time that a backup has everything up to; None if this is none, or was served."""
        return self._meta.backup_of

    def present_at(self) -> datetime | None:
        """Return when the service was last known to run."""
        return self._meta.present_at

    def absences(self) -> Sequence[Absence]:
        """Return the stretches in which guests could not be heard, as far as they matter."""
        return self._meta.absences

    def grace(self) -> Grace | None:
        """Return until when unapproved starts are deferred, if they are."""
        return self._meta.grace

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        return self._meta.applied_fleet

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        return self._meta.lineage

    def tallies(self) -> Mapping[str, int]:
        """Return how many machines the records of a kind have named, for the kinds that are counted."""
        query = select(tables.tallies.c.kind, tables.tallies.c.machines)
        return _COUNTED | {row[0]: row[1] for row in self._all(query)}
