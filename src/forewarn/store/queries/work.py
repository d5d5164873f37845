"""Orders and events as a scope sees them: lists, page by page, and single things."""

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, func, or_, select, union

from forewarn.core.basic_types import (
    SIMULATED,
    EventId,
    HostName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.filters import ANY_ORDER, CURRENT_EVENTS, EventFilter, OrderFilter
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.event import Event
from forewarn.core.model.order import HostStep, Order, really_works_on_host
from forewarn.core.model.record import MonthlyPromises
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.reads.loading import IS_SCHEDULED
from forewarn.store.reads.promises import NoticeReads, PromiseReads
from forewarn.store.reads.reader import EVENT_PROJECT, Reader, among, concerning
from forewarn.store.rows.mapping import micros
from forewarn.store.rows.stored import EVENTS, ORDERS, STORED, name_key

_M, _O, _E, _R = tables.machines.c, tables.orders.c, tables.events.c, tables.records.c
_TOUCHED, _NAMED = tables.order_machines.c, tables.event_machines.c
_LISTED = EVENTS.select().where(tables.LISTED_EVENT)
_OWNERS = among(select(_E.id, EVENT_PROJECT), _E.id)
_SIMULATED = among(select(_E.id, _O.host_steps).join(tables.orders, _O.id == _E.order_id), _E.id).where(
    _O.driver == SIMULATED, _O.work.in_([work.value for work in Work if work.touches_machines])
)
# Asked with most orders, and so put together once.
_SCHEDULED = select(func.count()).where(*IS_SCHEDULED, _O.project == bindparam("of"))


class WorkQueries(Reader):
    """Orders and events, and what became of them."""

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        query = ORDERS.select().where(_O.id == order.upper())
        if self._project is not None:
            told = self._mine(select(_E.order_id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            of_host = and_(_O.project.is_(None), _O.id.in_(told))
            query = query.where(or_(_O.project == self._project, of_host))
        return self._find(ORDERS.read, query)

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        query = EVENTS.select().where(_E.id == event.upper())
        return self._find(EVENTS.read, self._mine(query, EVENT_PROJECT))

    def orders(
        self, wanted: OrderFilter = ANY_ORDER, *, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first."""
        query = self._mine(ORDERS.select().where(*self._orders_wanted(wanted)), _O.project)
        return self._page(ORDERS.read, query, (_O.number, _O.id), after=after, limit=limit, newest=True)

    def events(
        self, wanted: EventFilter = CURRENT_EVENTS, *, after: str | None, limit: int
    ) -> tuple[Sequence[Event], str | None]:
        """List listed events, by creation; or past ones too, newest first."""
        query = EVENTS.select() if wanted.past else _LISTED
        query = self._mine(query.where(*self._events_wanted(wanted)), EVENT_PROJECT)
        by = (_E.number, _E.id)
        return self._page(EVENTS.read, query, by, after=after, limit=limit, newest=wanted.past)

    def projects_of_events(self, events: Sequence[EventId]) -> Mapping[EventId, ProjectName]:
        """Return whose these events are; of past ones as long as the record of their announcement is kept."""
        rows = self._among(_OWNERS, {event.upper() for event in events})
        return {event: project for event, project in rows if project is not None}

    def simulated_events(self, events: Sequence[EventId]) -> Set[EventId]:
        """Return those of these events for which nothing is really done."""
        rows = self._among(_SIMULATED, {event.upper() for event in events})
        read = STORED.read
        return {event for event, steps in rows if not really_works_on_host(read(tuple[HostStep, ...], steps))}

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        query = self._mine(_LISTED, EVENT_PROJECT)
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        query = EVENTS.select().where(_E.order_id == order.upper())
        if self._project is not None:
            # By the order's project first: the record that tells an ended event's own may have been removed.
            project = select(_O.project).where(_O.id == _E.order_id).scalar_subquery()
            mine = self._mine(select(_E.id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            query = query.where(or_(project == self._project, and_(project.is_(None), _E.id.in_(mine))))
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        loaded = self._transaction.loaded.scheduled
        if project in loaded:
            return loaded[project]
        return int(self._connection.execute(_SCHEDULED, {"of": project}).scalar_one())

    def notices(self, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, as far as that is saved."""
        return NoticeReads(self._transaction).first_sent(events)

    def absences(self) -> Sequence[Absence]:
        """Return the recent stretches in which guests could not see events, in order."""
        return self._meta.absences

    def deferrals(self, events: Sequence[EventId]) -> Mapping[EventId, Sequence[datetime]]:
        """Return when those of these events that were deferred were, first to last."""
        return NoticeReads(self._transaction).deferrals(events)

    def promises(
        self, *, month: str | None = None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """List what became of promises by project and month: of all months, or of one."""
        return PromiseReads(self._transaction).page(month=month, after=after, limit=limit)

    def _orders_wanted(self, wanted: OrderFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.state is not None:
            yield _O.state == wanted.state.value
        if wanted.only_open:
            yield tables.OPEN_ORDER
        if wanted.host is not None:
            yield _O.id.in_(_orders_at(wanted.host))
        if wanted.machine is not None:
            key = name_key(wanted.machine)
            found = _orders_about(key) if self._may_look_up(key) else self._in_own_records(_R.order_id, key)
            yield _O.id.in_(found)

    def _events_wanted(self, wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.begins:
            yield _E.id.startswith(wanted.begins.upper(), autoescape=True)
        if wanted.machine is not None:
            key = name_key(wanted.machine)
            found = _events_naming(key) if self._may_look_up(key) else self._in_own_records(_R.event_id, key)
            yield _E.id.in_(found)
        if wanted.host is not None:
            yield _E.order_id.in_(_orders_at(wanted.host))
        if wanted.until is not None:
            yield _E.announced_at < micros(wanted.until)
        if wanted.since is not None and wanted.past:
            # Two searches along an index, in place of one through all that ever was.
            over = select(_E.id).where(_E.ended_at >= micros(wanted.since))
            yield _E.id.in_(union(over, select(_E.id).where(tables.LISTED_EVENT)))

    def _in_own_records(self, column: Column[Any], machine_key: str) -> Select[Any]:
        """Select what the project's own records about a machine name."""
        about = select(column).where(column.is_not(None), concerning(machine_key, by_index=False))
        return self._mine(about, _R.project)


def _events_naming(machine_key: str) -> Select[Any]:
    return select(_NAMED.event_id).where(_NAMED.machine_key == machine_key)


def _orders_at(host: HostName) -> Any:
    """Find the orders on a host, and the open ones on machines that it carries."""
    carried = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(select(_O.id).where(_O.host == host), carried.where(_M.host == host))


def _orders_about(key: str) -> Any:
    """Find the orders that a machine was ordered for, told of, or is to be touched by."""
    touching = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(
        select(_R.order_id).where(_R.machine_key == key, _R.order_id.is_not(None)),
        select(_E.order_id).where(_E.id.in_(_events_naming(key))),
        touching.where(_M.key == key),
    )
