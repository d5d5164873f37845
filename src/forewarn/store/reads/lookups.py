"""Finding and counting single things in a snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, select

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
from forewarn.store.reads.reader import VERSIONED_GROUP, Reader, among
from forewarn.store.rows.fleet_rows import (
    HOST_COLUMNS,
    MACHINE_COLUMNS,
    host_of,
    machine_of,
    name_key,
)
from forewarn.store.rows.times import moment
from forewarn.store.rows.work_rows import (
    EVENT_COLUMNS,
    EVENT_PROJECT,
    ORDER_COLUMNS,
    event_of,
    order_of,
)

_EVENTS_BY_ID = among(EVENT_COLUMNS, tables.events.c.id)
_OPEN_BY_ID = among((tables.orders.c.id,), tables.orders.c.id).where(tables.orders.c.ended_at.is_(None))
_LAST_SEEN = among((tables.machines.c.id, tables.machines.c.last_seen), tables.machines.c.id).where(
    tables.machines.c.last_seen.is_not(None)
)
_NOT_STARTED = (OrderState.QUEUED, OrderState.ANNOUNCED)
_OPEN = (*_NOT_STARTED, OrderState.STARTED, OrderState.FAILED)


class Lookups(Reader):
    """What can be asked about one thing, or about all of them as a number."""

    def machine(self, name: str, *, project: ProjectName | None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        query = select(*MACHINE_COLUMNS).where(tables.machines.c.key == name_key(name))
        if project is not None:
            query = query.where(tables.machines.c.project == project)
        query = self._mine(query, tables.machines.c.project).order_by(tables.machines.c.project)
        found = [machine_of(row) for row in self._all(query)]
        if not found:
            raise NotFound(f'machine "{name}" does not exist')
        if len(found) > 1:
            projects = ", ".join(machine.project for machine in found)
            raise Conflict(f'machine "{name}" is in several projects ({projects}): say which')
        return found[0]

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        rows = self._all(select(*MACHINE_COLUMNS).where(tables.machines.c.id == machine.lower()))
        return machine_of(rows[0]) if rows else None

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        query = select(*VERSIONED_GROUP).where(tables.groups.c.name == name)
        found = self._groups_of(self._all(self._mine(query, tables.groups.c.project)))
        return found[0] if found else None

    def host(self, name: HostName) -> Host | None:
        """Find a host."""
        rows = self._all(select(*HOST_COLUMNS).where(tables.hosts.c.name == name))
        return host_of(rows[0]) if rows else None

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        query = select(*ORDER_COLUMNS).where(tables.orders.c.id == order.upper())
        rows = self._all(self._mine(query, tables.orders.c.project))
        return order_of(rows[0]) if rows else None

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ids = sorted({order.upper() for order in among})
        return frozenset(order for (order,) in self._among(_OPEN_BY_ID, ids))

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        query = select(*EVENT_COLUMNS).where(tables.events.c.id == event.upper())
        rows = self._all(self._mine(query, EVENT_PROJECT))
        return event_of(rows[0]) if rows else None

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        query = select(*EVENT_COLUMNS).where(tables.events.c.order_id == order.upper())
        return _by_creation(event_of(row) for row in self._all(query))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ids = {event.upper() for event in among}
        query = _EVENTS_BY_ID.where(tables.events.c.group_name == group)
        return _by_creation(event_of(row) for row in self._among(query, ids))

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        orders = tables.orders.c
        query = select(func.count()).where(
            orders.ended_at.is_(None),
            orders.state.in_([state.value for state in _NOT_STARTED]),
            orders.source == Source.USER.value,
            orders.project == project,
        )
        return int(self._connection.execute(query).scalar_one())

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when each of these machines was last seen, as far as that is saved."""
        ids = {machine.lower() for machine in machines}
        return {machine: moment(seen) for machine, seen in self._among(_LAST_SEEN, ids)}

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders and listed events by state."""
        order_open, event_listed = tables.orders.c.ended_at.is_(None), tables.events.c.ended_at.is_(None)
        return {
            "machines": self._count(tables.machines.c.state, MachineState),
            "hosts": self._count(tables.hosts.c.state, HostState),
            "orders": self._count(tables.orders.c.state, _OPEN, only=order_open),
            "events": self._count(tables.events.c.status, EventStatus, only=event_listed),
        }

    def _count(
        self,
        column: ColumnElement[Any],
        states: Iterable[StrEnum],
        *,
        only: ColumnElement[bool] | None = None,
    ) -> Mapping[str, int]:
        query = select(column, func.count()).group_by(column)
        counted = self._all(query if only is None else query.where(only))
        # A state that nothing is in any more must show as 0, or a metric would stay where it was.
        return {state.value: 0 for state in states} | {row[0]: row[1] for row in counted}

    def reached(self) -> datetime | None:
        """Say what service time has been reached; None in a new store."""
        return self._meta.reached

    def grace(self) -> Grace | None:
        """Say whether unapproved starts are put off."""
        return self._meta.grace

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        return self._meta.applied_fleet

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        return self._meta.lineage


def _by_creation(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.number, event.id))
