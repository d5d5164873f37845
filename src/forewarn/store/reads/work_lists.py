"""The lists of orders and events, page by page."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from sqlalchemy import ColumnElement, Select, select, union

from forewarn.control.ports.work import (
    ANY_ORDER,
    CURRENT_EVENTS,
    EventFilter,
    OrderFilter,
)
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.words import SIMULATED, EventId, HostName, MachineName, ProjectName, Work
from forewarn.store import tables
from forewarn.store.reads.reader import EVENT_PROJECT, Reader, among
from forewarn.store.rows.stored import EVENTS, ORDERS, name_key
from forewarn.store.rows.times import micros

_M, _O, _E, _R = tables.machines.c, tables.orders.c, tables.events.c, tables.records.c
_TOUCHED, _NAMED = tables.order_machines.c, tables.event_machines.c
_LISTED = EVENTS.select().where(tables.LISTED_EVENT)
_OWNERS = among(select(_E.id, EVENT_PROJECT), _E.id)
_SIMULATED = among(select(_E.id).join(tables.orders, _O.id == _E.order_id), _E.id).where(
    _O.driver == SIMULATED, _O.work.in_([work.value for work in Work if work.touches_machines])
)


class WorkLists(Reader):
    """Orders and events in their order."""

    def orders(
        self, wanted: OrderFilter = ANY_ORDER, *, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first."""
        query = self._mine(ORDERS.select().where(*_orders_wanted(wanted)), _O.project)
        return self._page(ORDERS.read, query, (_O.number, _O.id), after=after, limit=limit, newest=True)

    def events(
        self, wanted: EventFilter = CURRENT_EVENTS, *, after: str | None, limit: int
    ) -> tuple[Sequence[Event], str | None]:
        """List listed events, by creation; or past ones too, newest first."""
        query = EVENTS.select() if wanted.past else _LISTED
        query = self._mine(query.where(*_events_wanted(wanted)), EVENT_PROJECT)
        by = (_E.number, _E.id)
        return self._page(EVENTS.read, query, by, after=after, limit=limit, newest=wanted.past)

    def projects_of_events(self, events: Sequence[EventId]) -> Mapping[EventId, ProjectName]:
        """Return whose these events are; of past ones as long as the record of their announcement is kept."""
        rows = self._among(_OWNERS, {event.upper() for event in events})
        return {event: project for event, project in rows if project is not None}

    def simulated_events(self, events: Sequence[EventId]) -> Set[EventId]:
        """Return those of these events for which nothing is really done."""
        return {event for (event,) in self._among(_SIMULATED, {event.upper() for event in events})}

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        query = self._mine(_LISTED, EVENT_PROJECT)
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))


def _orders_wanted(wanted: OrderFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.state is not None:
        yield _O.state == wanted.state.value
    if wanted.only_open:
        yield tables.OPEN_ORDER
    if wanted.host is not None:
        yield _O.id.in_(_orders_at(wanted.host))
    if wanted.machine is not None:
        yield _O.id.in_(_orders_about(wanted.machine))


def _events_wanted(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.begins:
        yield _E.id.startswith(wanted.begins.upper(), autoescape=True)
    if wanted.machine is not None:
        yield _E.id.in_(_events_naming(wanted.machine))
    if wanted.host is not None:
        yield _E.order_id.in_(_orders_at(wanted.host))
    if wanted.until is not None:
        yield _E.announced_at < micros(wanted.until)
    if wanted.since is not None and wanted.past:
        # Two searches along an index, in place of one through all that ever was.
        over = select(_E.id).where(_E.ended_at >= micros(wanted.since))
        yield _E.id.in_(union(over, select(_E.id).where(tables.LISTED_EVENT)))


def _events_naming(machine: MachineName) -> Select[Any]:
    return select(_NAMED.event_id).where(_NAMED.machine_key == name_key(machine))


def _orders_at(host: HostName) -> Any:
    """Find the orders on a host, and the open ones on machines that it carries."""
    carried = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(select(_O.id).where(_O.host == host), carried.where(_M.host == host))


def _orders_about(machine: MachineName) -> Any:
    """Find the orders that a machine was ordered for, told of, or is to be touched by."""
    key = name_key(machine)
    touching = select(_TOUCHED.order_id).join(tables.machines, _M.id == _TOUCHED.machine_id)
    return union(
        select(_R.order_id).where(_R.machine_key == key, _R.order_id.is_not(None)),
        select(_E.order_id).where(_E.id.in_(_events_naming(machine))),
        touching.where(_M.key == key),
    )
