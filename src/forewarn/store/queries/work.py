"""Orders and events in a scope, with their notices and promises."""

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, func, or_, select, union

from forewarn.core.basic_types import SIMULATED, EventId, HostName, Kind, OrderId, ProjectName, Work
from forewarn.core.filters import ANY_ORDER, CURRENT_EVENTS, EventFilter, OrderFilter
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.event import Event
from forewarn.core.model.order import HostStep, Order, really_works_on_host
from forewarn.core.model.record import MonthlyPromises
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.key_lists import for_keys
from forewarn.store.reads.notices import first_sent
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.prefetching import IS_SCHEDULED
from forewarn.store.reads.statements import EVENT_PROJECT, about_machine
from forewarn.store.rows.mapping import Row, micros, moment
from forewarn.store.rows.stored import EVENTS, ORDERS, STORED, name_key

_M, _O, _E, _R = tables.machines.c, tables.orders.c, tables.events.c, tables.records.c
_P = tables.promises.c
_TOUCHED, _NAMED = tables.order_machines.c, tables.event_machines.c
_LISTED = EVENTS.select().where(tables.LISTED_EVENT)
_OWNERS = for_keys(select(_E.id, EVENT_PROJECT), _E.id)
_SIMULATED = for_keys(select(_E.id, _O.host_steps).join(tables.orders, _O.id == _E.order_id), _E.id).where(
    _O.driver == SIMULATED, _O.work.in_([work.value for work in Work if work.touches_machines])
)
# Built once: most orders run it.
_SCHEDULED = select(func.count()).where(*IS_SCHEDULED, _O.project == bindparam("of"))
# From the history: an event is also deferred together with another one for which a guest asked.
_DEFERRED = for_keys(select(_R.event_id, _R.at), _R.event_id).where(_R.kind == Kind.EVENT_DEFERRED.value)
_PROMISES = select(*_P)


class WorkQueries(Queries):
    """Queries for orders, events and promises."""

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; the case of the id does not matter."""
        query = ORDERS.select().where(_O.id == order.upper())
        if self._tx.project is not None:
            told = self._tx.in_scope(select(_E.order_id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            of_host = and_(_O.project.is_(None), _O.id.in_(told))
            query = query.where(or_(_O.project == self._tx.project, of_host))
        return self._tx.find(ORDERS.read, query)

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or ended; the case of the id does not matter."""
        query = EVENTS.select().where(_E.id == event.upper())
        return self._tx.find(EVENTS.read, self._tx.in_scope(query, EVENT_PROJECT))

    def orders(
        self, wanted: OrderFilter = ANY_ORDER, *, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first."""
        query = self._tx.in_scope(ORDERS.select().where(*self._orders_wanted(wanted)), _O.project)
        return self._tx.page(ORDERS.read, query, (_O.number, _O.id), after=after, limit=limit, newest=True)

    def events(
        self, wanted: EventFilter = CURRENT_EVENTS, *, after: str | None, limit: int
    ) -> tuple[Sequence[Event], str | None]:
        """List current events by creation, or also past events, newest first."""
        query = EVENTS.select() if wanted.past else _LISTED
        query = self._tx.in_scope(query.where(*self._events_wanted(wanted)), EVENT_PROJECT)
        by = (_E.number, _E.id)
        return self._tx.page(EVENTS.read, query, by, after=after, limit=limit, newest=wanted.past)

    def projects_of_events(self, events: Sequence[EventId]) -> Mapping[EventId, ProjectName]:
        """Return the projects of events; past events have one until their first record is pruned."""
        rows = self._tx.rows_for(_OWNERS, {event.upper() for event in events})
        return {event: project for event, project in rows if project is not None}

    def simulated_events(self, events: Sequence[EventId]) -> Set[EventId]:
        """Return the events for which no driver does real work, out of these."""
        rows = self._tx.rows_for(_SIMULATED, {event.upper() for event in events})
        read = STORED.read
        return {event for event, steps in rows if not really_works_on_host(read(tuple[HostStep, ...], steps))}

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        query = self._tx.in_scope(_LISTED, EVENT_PROJECT)
        return self._tx.read_all(EVENTS.read, query.order_by(_E.number, _E.id))

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, ended ones too, by creation."""
        query = EVENTS.select().where(_E.order_id == order.upper())
        if self._tx.project is not None:
            # The project of the order first: the record that has the project of an ended event may be pruned.
            project = select(_O.project).where(_O.id == _E.order_id).scalar_subquery()
            mine = self._tx.in_scope(select(_E.id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            query = query.where(or_(project == self._tx.project, and_(project.is_(None), _E.id.in_(mine))))
        return self._tx.read_all(EVENTS.read, query.order_by(_E.number, _E.id))

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count the user orders of a project that have not started."""
        prefetched = self._tx.batch.prefetched.scheduled
        if project in prefetched:
            return prefetched[project]
        return int(self._tx.connection.execute(_SCHEDULED, {"of": project}).scalar_one())

    def notices(self, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, as far as that is saved."""
        return first_sent(self._tx, events)

    def absences(self) -> Sequence[Absence]:
        """Return the recent periods in which guests could not see events, in order."""
        return self._tx.meta.absences

    def deferrals(self, events: Sequence[EventId]) -> Mapping[EventId, Sequence[datetime]]:
        """Return when these events were deferred, in order; events that never were are missing."""
        found: dict[EventId, list[datetime]] = {}
        rows = self._tx.rows_for(_DEFERRED.order_by(_R.number), {event.upper() for event in events})
        for event, at in rows:
            found.setdefault(event, []).append(moment(at))
        return found

    def promises(
        self, *, month: str | None = None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """List the outcomes of promises by project and month: of all months, or of one."""
        query = self._tx.in_scope(_PROMISES, _P.project)
        if month is not None:
            query = query.where(_P.month == month)
        by = (_P.project, _P.month, _P.simulated)
        return self._tx.page(_read_promises, query, by, after=after, limit=limit)

    def _orders_wanted(self, wanted: OrderFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.state is not None:
            yield _O.state == wanted.state.value
        if wanted.only_open:
            yield tables.OPEN_ORDER
        if wanted.host is not None:
            yield _O.id.in_(_orders_at(wanted.host))
        if wanted.machine is not None:
            key = name_key(wanted.machine)
            found = (
                _orders_about(key)
                if self._tx.may_use_name_index(key)
                else self._in_own_records(_R.order_id, key)
            )
            yield _O.id.in_(found)

    def _events_wanted(self, wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.begins:
            yield _E.id.startswith(wanted.begins.upper(), autoescape=True)
        if wanted.machine is not None:
            key = name_key(wanted.machine)
            found = (
                _events_naming(key)
                if self._tx.may_use_name_index(key)
                else self._in_own_records(_R.event_id, key)
            )
            yield _E.id.in_(found)
        if wanted.host is not None:
            yield _E.order_id.in_(_orders_at(wanted.host))
        if wanted.until is not None:
            yield _E.announced_at < micros(wanted.until)
        if wanted.since is not None and wanted.past:
            # Two index searches instead of one through all events.
            over = select(_E.id).where(_E.ended_at >= micros(wanted.since))
            yield _E.id.in_(union(over, select(_E.id).where(tables.LISTED_EVENT)))

    def _in_own_records(self, column: Column[Any], machine_key: str) -> Select[Any]:
        """Select the orders or events in the project's own records about a machine."""
        about = select(column).where(column.is_not(None), about_machine(machine_key, by_index=False))
        return self._tx.in_scope(about, _R.project)


def _read_promises(row: Row) -> MonthlyPromises:
    return MonthlyPromises(**dict(zip(_P.keys(), row, strict=False)))


def _events_naming(machine_key: str) -> Select[Any]:
    return select(_NAMED.event_id).where(_NAMED.machine_key == machine_key)


def _orders_at(host: HostName) -> Any:
    """Find the orders on a host, and the open ones on machines that it carries."""
    carried = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(select(_O.id).where(_O.host == host), carried.where(_M.host == host))


def _orders_about(key: str) -> Any:
    """Find the orders on a machine: by records, by events that named it, by steps to come."""
    touching = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(
        select(_R.order_id).where(_R.machine_key == key, _R.order_id.is_not(None)),
        select(_E.order_id).where(_E.id.in_(_events_naming(key))),
        touching.where(_M.key == key),
    )
