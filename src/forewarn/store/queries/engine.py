"""What the engine asks: what is due, when anything will be, and what its rules decide on."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, ScalarSelect, Text, bindparam, cast, func, select

from forewarn.core.basic_types import (
    EventId,
    GroupName,
    HostName,
    MachineId,
    OrderId,
    OrderState,
)
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, HostLoad
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.slice import Slice
from forewarn.store import tables
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, SELECT_GROUPS, Reader, among
from forewarn.store.reads.slice_reads import ALL_DOMAIN_COUNTS, DomainCounts, ScopedRuleQueries
from forewarn.store.rows.mapping import micros, moment_or_none
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS, PROJECTS

_O, _G, _A, _R = tables.orders.c, tables.groups.c, tables.group_activity.c, tables.rollouts.c
_M, _E, _H = tables.machines.c, tables.events.c, tables.hosts.c
_BY_ACTIVITY = SELECT_GROUPS.join(tables.group_activity, _A.group_name == _G.name)
_OPEN_ORDERS = among(select(_O.id), _O.id).where(tables.IS_OPEN_ORDER)
# A host may be cordoned before anything is started.
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
    """When something falls due next, of each kind."""

    order: datetime | None
    rollout: datetime | None
    ready: datetime | None  # a group
    oldest_activity: datetime | None  # of the enabled group that has been silent for longest


class DueQueries(Reader):
    """Questions whose cost grows with what is due, never with the fleet."""

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started or failed, or have steps of their hosts, oldest first."""
        begun = _O.state.in_((OrderState.STARTED.value, OrderState.FAILED.value)) | _HAS_HOST_STEPS
        return self._list(ORDERS.read, ORDERS.select().where(tables.OPEN_ORDER, begun).order_by(_O.number))

    def orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now: the longest due, the first announced first.

        Of orders that wait for the same group, the first to be looked at is armed.
        """
        query = select(_O.id, _O.announced_at).where(_O.due_at <= micros(now))
        due = self._all(query.order_by(_O.due_at, _O.number).limit(limit))
        return [row[0] for row in sorted(due, key=_by_announcement)]

    def moments(self, *, after: datetime) -> DueMoments:
        """Return when something falls due next, of each kind; a group that is ready after a moment."""
        row = self._connection.execute(_MOMENTS, {"after": micros(after)}).one()
        return DueMoments(*map(moment_or_none, row))

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        query = _BY_ACTIVITY.where(_A.last_active <= micros(since))
        return self._list(
            self._transaction.read_group, query.order_by(_A.last_active, _A.group_name).limit(limit)
        )

    def open_orders(self, orders: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ids = sorted({order.upper() for order in orders})
        return frozenset(order for (order,) in self._among(_OPEN_ORDERS, ids))


_EVENTS = among(EVENTS.select(), _E.id)


class RuleQueries(ScopedRuleQueries):
    """What can be loaded for the whole fleet alone, besides what is around something."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        orders = ORDERS.select().where(tables.OPEN_ORDER).order_by(tables.orders.c.number)
        by_name = MACHINES.select().order_by(tables.machines.c.project, tables.machines.c.key)
        listed = EVENTS.select().where(tables.LISTED_EVENT).order_by(_E.number, _E.id)
        hosts = self._list(HOSTS.read, HOSTS.select().order_by(tables.hosts.c.name))
        groups = self._list(self._transaction.read_group, SELECT_GROUPS.order_by(tables.groups.c.name))
        projects = self._list(PROJECTS.read, PROJECTS.select().order_by(tables.projects.c.name))
        machines = self._list(MACHINES.read, by_name)
        events = self._list(EVENTS.read, listed)
        budgets, counts = self._budgets.load(groups), DomainCounts(self._all(ALL_DOMAIN_COUNTS))
        return Slice(
            number=self._meta.number,
            defaults=self._meta.defaults,
            projects={project.name: project for project in projects},
            hosts={host.name: host for host in hosts},
            groups={group.name: group for group in groups},
            machines={machine.id: machine for machine in machines},
            orders={order.id: order for order in self._list(ORDERS.read, orders)},
            events={event.id: event for event in events},
            listed=counts.listed,
            armed=counts.armed,
            room=self._rooms.for_machines(machines, groups, budgets, sources=hosts),
            budgets=budgets,
            grace=self._meta.grace,
            slew=self._meta.slew,
            absences=self._meta.absences,
            pace=self._meta.pace,
            holds=self._settings.holds(),
        )

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        return self._find(self._transaction.read_machine, MACHINES_WITH_HOSTS.where(_M.id == machine.lower()))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ids = {event.upper() for event in among}
        found = self._load(EVENTS.read, _EVENTS.where(_E.group_name == group), ids)
        return sorted(found, key=lambda event: (event.number, event.id))

    def host_drivers(self) -> HostDrivers:
        """Return who does the work on which host."""
        declared = select(_H.name, _H.driver).where(tables.OWN_DRIVER)
        own = {HostName(name): driver for name, driver in self._all(declared)}
        return HostDrivers(defaults=self._meta.defaults, own=own)

    def host_loads(self, hosts: Sequence[Host]) -> Mapping[HostName, HostLoad]:
        """Count what each of these hosts carries, whatever its project, and what is free there."""
        return self._rooms.loads(hosts)
