"""The lists of a snapshot, page by page."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Select, func, or_, select

from forewarn.control.ports.records import HistoryFilter
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.words import GroupName, HostName, OrderState
from forewarn.store import tables
from forewarn.store.reads.cursors import beyond, decode, page
from forewarn.store.reads.reader import VERSIONED_GROUP, Reader
from forewarn.store.rows.fleet_rows import (
    HOST_COLUMNS,
    MACHINE_COLUMNS,
    PROJECT_COLUMNS,
    host_of,
    machine_of,
    name_key,
    project_of,
)
from forewarn.store.rows.times import micros
from forewarn.store.rows.work_rows import (
    EVENT_COLUMNS,
    EVENT_PROJECT,
    ORDER_COLUMNS,
    RECORD_COLUMNS,
    event_of,
    order_of,
    record_of,
)


class Lists(Reader):
    """Machines, groups, hosts, projects, orders, events and records in their order."""

    def machines(
        self,
        *,
        after: str | None,
        limit: int,
        group: GroupName | None = None,
        host: HostName | None = None,
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name: all, or those of a group, on a host, or both."""
        place = None if after is None else decode(after, like=(str, str))
        columns = (tables.machines.c.project, tables.machines.c.key)
        query = self._mine(select(*MACHINE_COLUMNS), tables.machines.c.project)
        if group is not None:
            query = query.where(tables.machines.c.group_name == group)
        if host is not None:
            query = query.where(tables.machines.c.host == host)
        query = beyond(query, columns, place, limit=limit, newest=False)
        found = [machine_of(row) for row in self._all(query)]
        return page(found, limit=limit, place=lambda machine: (machine.project, name_key(machine.name)))

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        place = None if after is None else decode(after, like=(str,))
        query = self._mine(select(*VERSIONED_GROUP).where(tables.LISTED_GROUP), tables.groups.c.project)
        found = self._groups_of(
            self._all(beyond(query, (tables.groups.c.name,), place, limit=limit, newest=False))
        )
        return page(found, limit=limit, place=lambda group: (group.name,))

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name."""
        place = None if after is None else decode(after, like=(str,))
        query = beyond(select(*HOST_COLUMNS), (tables.hosts.c.name,), place, limit=limit, newest=False)
        found = [host_of(row) for row in self._all(query)]
        return page(found, limit=limit, place=lambda host: (host.name,))

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        query = self._mine(select(*PROJECT_COLUMNS), tables.projects.c.name)
        return [project_of(row) for row in self._all(query.order_by(tables.projects.c.name))]

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and give the cursor of the next page."""
        place = None if after is None else decode(after, like=(str,))
        name = tables.projects.c.name
        query = beyond(self._mine(select(*PROJECT_COLUMNS), name), (name,), place, limit=limit, newest=False)
        found = [project_of(row) for row in self._all(query)]
        return page(found, limit=limit, place=lambda project: (project.name,))

    def orders(
        self, *, state: OrderState | None, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first, open or over."""
        place = None if after is None else decode(after, like=(int, str))
        query = self._mine(select(*ORDER_COLUMNS), tables.orders.c.project)
        if state is not None:
            query = query.where(tables.orders.c.state == state.value)
        columns = (tables.orders.c.number, tables.orders.c.id)
        found = [order_of(row) for row in self._all(beyond(query, columns, place, limit=limit, newest=True))]
        return page(found, limit=limit, place=lambda order: (order.number, order.id))

    def events(self, *, after: str | None, limit: int) -> tuple[Sequence[Event], str | None]:
        """List the listed events, by creation."""
        place = None if after is None else decode(after, like=(int, str))
        query = self._mine(select(*EVENT_COLUMNS).where(tables.events.c.ended_at.is_(None)), EVENT_PROJECT)
        columns = (tables.events.c.number, tables.events.c.id)
        found = [event_of(row) for row in self._all(beyond(query, columns, place, limit=limit, newest=False))]
        return page(found, limit=limit, place=lambda event: (event.number, event.id))

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        query = self._mine(select(*EVENT_COLUMNS).where(tables.events.c.ended_at.is_(None)), EVENT_PROJECT)
        by_creation = query.order_by(tables.events.c.number, tables.events.c.id)
        return [event_of(row) for row in self._all(by_creation)]

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first; those above a number oldest first."""
        query = self._mine(select(*RECORD_COLUMNS).where(*_conditions(wanted)), tables.records.c.project)
        number = tables.records.c.number
        in_order = query.order_by(number.desc() if wanted.above is None else number).limit(wanted.limit)
        return [record_of(row) for row in self._all(in_order)]


def _conditions(wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    records = tables.records.c
    conditions: list[ColumnElement[bool]] = []
    if wanted.project is not None:
        conditions.append(records.project == wanted.project)
    if wanted.machine is not None:
        conditions.append(concerns(name_key(wanted.machine)))
    if wanted.event is not None:
        conditions.append(records.event_id == wanted.event.upper())
    if wanted.order is not None:
        conditions.append(records.order_id == wanted.order.upper())
    if wanted.since is not None:
        conditions.append(records.number >= _first_since(micros(wanted.since)).scalar_subquery())
    if wanted.kinds:
        conditions.append(records.kind.in_(sorted(map(str, wanted.kinds))))
    return [*conditions, *_between(wanted)]


def _between(wanted: HistoryFilter) -> Iterator[ColumnElement[bool]]:
    number = tables.records.c.number
    if wanted.below is not None:
        yield number < wanted.below
    if wanted.above is not None:
        yield number > wanted.above


def concerns(machine_key: str) -> ColumnElement[bool]:
    """A record is about a machine if it names it, or is about an event that named it."""
    named = tables.event_machines.c
    events = select(named.event_id).where(named.machine_key == machine_key)
    return or_(tables.records.c.machine_key == machine_key, tables.records.c.event_id.in_(events))


def _first_since(at: int) -> Select[tuple[int]]:
    """Find the first record of a time.

    Times grow with the numbers, so this bound spares the database reading and sorting by time; where
    there is no such record the comparison is with nothing, and finds nothing.
    """
    first = select(func.min(tables.records.c.at)).where(tables.records.c.at >= at).scalar_subquery()
    return select(func.min(tables.records.c.number)).where(tables.records.c.at == first)
