"""Queries of the engine: due work, the next due time, and the input of decisions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, ScalarSelect, Text, bindparam, cast, func, select

from forewarn.core.basic_types import EventId, GroupName, HostName, MachineId, OrderId, OrderState
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, HostLoad
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.slice import Slice
from forewarn.store import tables
from forewarn.store.key_lists import for_keys
from forewarn.store.reads.capacity import host_loads, load_budgets, load_rooms
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.slice_reads import ALL_DOMAIN_COUNTS, DomainCounts, ScopedRuleQueries, load_settings
from forewarn.store.reads.statements import MACHINES_WITH_HOSTS, SELECT_GROUPS
from forewarn.store.rows.mapping import micros, moment_or_none
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS

_O, _G, _A, _R = tables.orders.c, tables.groups.c, tables.group_activity.c, tables.rollouts.c
_M, _E, _H = tables.machines.c, tables.events.c, tables.hosts.c
_BY_ACTIVITY = SELECT_GROUPS.join(tables.group_activity, _A.group_name == _G.name)
_OPEN_ORDERS = for_keys(select(_O.id), _O.id).where(tables.IS_OPEN_ORDER)
# An order may cordon its host before anything starts.
_HAS_HOST_STEPS = cast(_O.host_steps, Text) != "[]"
_AFTER = bindparam("after", type_=tables.TIME)


def _first(column: Column[Any], *where: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(func.min(column)).where(*where).scalar_subquery()


_MOMENTS = select(
    _first(_O.due_at, _O.due_at.is_not(None)),
    _first(_R.due_at, tables.OPEN_ROLLOUT, _R.due_at.is_not(None)),
    _first(_G.ready_at, _G.ready_at > _AFTER),
    _first(_A.last_active),
)


def _by_announcement(row: Sequence[Any]) -> tuple[bool, int]:
    _, announced_at = row
    return announced_at is None, announced_at or 0


class DueMoments(NamedTuple):
    """The next due time of each kind of work."""

    order: datetime | None
    rollout: datetime | None
    ready: datetime | None  # a group
    oldest_activity: datetime | None  # of the enabled group that has been idle the longest


class DueQueries(Queries):
    """Queries whose cost grows with the work that is due, never with the fleet."""

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started, have failed or have host steps, oldest first."""
        begun = _O.state.in_((OrderState.STARTED.value, OrderState.FAILED.value)) | _HAS_HOST_STEPS
        return self._tx.read_all(
            ORDERS.read, ORDERS.select().where(tables.OPEN_ORDER, begun).order_by(_O.number)
        )

    def orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List the open orders that have been due the longest, in the order of their announcement.

        Of several orders that wait for the same group, the engine arms the first that it examines.
        """
        query = select(_O.id, _O.announced_at).where(_O.due_at <= micros(now))
        due = self._tx.rows(query.order_by(_O.due_at, _O.number).limit(limit))
        return [row[0] for row in sorted(due, key=_by_announcement)]

    def moments(self, *, after: datetime) -> DueMoments:
        """Return the next due time of each kind of work, and of groups that become ready after a moment."""
        row = self._tx.connection.execute(_MOMENTS, {"after": micros(after)}).one()
        return DueMoments(*map(moment_or_none, row))

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, longest idle first."""
        query = _BY_ACTIVITY.where(_A.last_active <= micros(since))
        return self._tx.read_all(
            self._tx.read_group, query.order_by(_A.last_active, _A.group_name).limit(limit)
        )

    def open_orders(self, orders: Iterable[OrderId]) -> frozenset[OrderId]:
        """Return the orders that are open, out of these."""
        ids = sorted({order.upper() for order in orders})
        return frozenset(order for (order,) in self._tx.rows_for(_OPEN_ORDERS, ids))


_EVENTS = for_keys(EVENTS.select(), _E.id)


class RuleQueries(ScopedRuleQueries):
    """The input of decisions, of one part of the fleet or of all of it."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        orders = ORDERS.select().where(tables.OPEN_ORDER).order_by(tables.orders.c.number)
        by_name = MACHINES.select().order_by(tables.machines.c.project, tables.machines.c.key)
        listed = EVENTS.select().where(tables.LISTED_EVENT).order_by(_E.number, _E.id)
        hosts = self._tx.read_all(HOSTS.read, HOSTS.select().order_by(tables.hosts.c.name))
        groups = self._tx.read_all(self._tx.read_group, SELECT_GROUPS.order_by(tables.groups.c.name))
        settings = load_settings(self._tx)
        machines = self._tx.read_all(MACHINES.read, by_name)
        events = self._tx.read_all(EVENTS.read, listed)
        budgets, counts = load_budgets(self._tx, groups), DomainCounts(self._tx.rows(ALL_DOMAIN_COUNTS))
        return Slice(
            number=self._tx.meta.number,
            defaults=self._tx.meta.defaults,
            projects=settings.projects,
            hosts={host.name: host for host in hosts},
            groups={group.name: group for group in groups},
            machines={machine.id: machine for machine in machines},
            orders={order.id: order for order in self._tx.read_all(ORDERS.read, orders)},
            events={event.id: event for event in events},
            listed=counts.listed,
            armed=counts.armed,
            room=load_rooms(self._tx, machines, groups, budgets, sources=hosts),
            budgets=budgets,
            grace=self._tx.meta.grace,
            slew=self._tx.meta.slew,
            absences=self._tx.meta.absences,
            pace=self._tx.meta.pace,
            holds=settings.holds,
        )

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        return self._tx.find(self._tx.read_machine, MACHINES_WITH_HOSTS.where(_M.id == machine.lower()))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Load the events of a group, current and past, out of these ids; case does not matter."""
        ids = {event.upper() for event in among}
        found = self._tx.load(EVENTS.read, _EVENTS.where(_E.group_name == group), ids)
        return sorted(found, key=lambda event: (event.number, event.id))

    def host_drivers(self) -> HostDrivers:
        """Return the drivers of hosts."""
        declared = select(_H.name, _H.driver).where(tables.OWN_DRIVER)
        own = {HostName(name): driver for name, driver in self._tx.rows(declared)}
        return HostDrivers(defaults=self._tx.meta.defaults, own=own)

    def host_loads(self, hosts: Sequence[Host]) -> Mapping[HostName, HostLoad]:
        """Count the machines of all projects on each of these hosts, and the free resources."""
        return host_loads(self._tx, hosts)
