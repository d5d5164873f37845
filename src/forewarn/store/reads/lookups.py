"""Finding and counting single things in a snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, ColumnElement, func, select

from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.words import (
    EventId,
    EventStatus,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineState,
    OrderId,
    OrderState,
    ProjectName,
    Source,
)
from forewarn.store import tables
from forewarn.store.reads.reader import EVENT_PROJECT, SELECT_GROUPS, Reader, among
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS, name_key
from forewarn.store.rows.times import moment

_M, _G, _O, _E = tables.machines.c, tables.groups.c, tables.orders.c, tables.events.c
_EVENTS = among(EVENTS.select(), _E.id)
_ORDERS = among(ORDERS.select(), _O.id)
_OPEN_ORDERS = among(select(_O.id), _O.id).where(tables.OPEN_ORDER)
_LAST_SEEN = among(select(_M.id, _M.last_seen), _M.id).where(_M.last_seen.is_not(None))
_NOT_STARTED = (OrderState.QUEUED, OrderState.ANNOUNCED)
_OPEN = (*_NOT_STARTED, OrderState.STARTED, OrderState.FAILED)


class Lookups(Reader):
    """What can be asked about one thing, or about all of them as a number."""

    def machine(self, name: str, *, project: ProjectName | None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        query = MACHINES.select().where(_M.key == name_key(name))
        if project is not None:
            query = query.where(_M.project == project)
        found = self._list(MACHINES.read, self._mine(query, _M.project).order_by(_M.project))
        if not found:
            raise NotFound(f'machine "{name}" does not exist')
        if len(found) > 1:
            projects = ", ".join(machine.project for machine in found)
            raise Conflict(f'machine "{name}" is in several projects ({projects}): say which')
        return found[0]

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        return self._find(MACHINES.read, MACHINES.select().where(_M.id == machine.lower()))

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        return self._find(self._group, self._mine(SELECT_GROUPS.where(_G.name == name), _G.project))

    def host(self, name: HostName) -> Host | None:
        """Find a host."""
        return self._find(HOSTS.read, HOSTS.select().where(tables.hosts.c.name == name))

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        query = ORDERS.select().where(_O.id == order.upper())
        return self._find(ORDERS.read, self._mine(query, _O.project))

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        return {order.id: order for order in self._load(ORDERS.read, _ORDERS, orders)}

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ids = sorted({order.upper() for order in among})
        return frozenset(order for (order,) in self._among(_OPEN_ORDERS, ids))

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        query = EVENTS.select().where(_E.id == event.upper())
        return self._find(EVENTS.read, self._mine(query, EVENT_PROJECT))

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        query = EVENTS.select().where(_E.order_id == order.upper())
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ids = {event.upper() for event in among}
        found = self._load(EVENTS.read, _EVENTS.where(_E.group_name == group), ids)
        return sorted(found, key=lambda event: (event.number, event.id))

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        query = ORDERS.select().where(
            tables.OPEN_ORDER,
            _O.state.in_([state.value for state in _NOT_STARTED]),
            _O.source == Source.USER.value,
            _O.project == project,
        )
        return self._count(query)

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when each of these machines was last seen, as far as that is saved."""
        ids = {machine.lower() for machine in machines}
        return {machine: moment(seen) for machine, seen in self._among(_LAST_SEEN, ids)}

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders and listed events by state."""
        return {
            "machines": self._count_by(_M.state, MachineState),
            "hosts": self._count_by(tables.hosts.c.state, HostState),
            "orders": self._count_by(_O.state, _OPEN, tables.OPEN_ORDER),
            "events": self._count_by(_E.status, EventStatus, tables.LISTED_EVENT),
        }

    def _count_by(
        self, column: Column[Any], states: Iterable[StrEnum], *only: ColumnElement[bool]
    ) -> Mapping[str, int]:
        counted = self._all(select(column, func.count()).where(*only).group_by(column))
        # A state that nothing is in any more must show as 0, or a metric would stay where it was.
        return {state.value: 0 for state in states} | {row[0]: row[1] for row in counted}

    def reached(self) -> datetime | None:
        """Return the service time that has been reached; None in a new store."""
        return self._meta.reached

    def grace(self) -> Grace | None:
        """Return until when unapproved starts are deferred, if they are."""
        return self._meta.grace

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        return self._meta.applied_fleet

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        return self._meta.lineage
