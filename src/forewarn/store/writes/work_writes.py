"""Saving orders, events and records."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, Table, bindparam, delete, insert, or_, select, update

from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.words import GroupName, HostName, StageState, StepState
from forewarn.store import tables
from forewarn.store.reads.reader import among, chunks
from forewarn.store.rows.stored import EVENTS, ORDERS, RECORDS, name_key
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import Writer

_O = tables.orders.c
_NOW = bindparam("now", type_=tables.TIME)
_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
_WAITING = select(tables.order_waits.c.order_id).where(tables.order_waits.c.group_name.in_(_KEYS))
# One that is already due keeps its place in the queue.
_WAKE = (
    update(tables.orders)
    .where(tables.OPEN_ORDER, or_(_O.due_at.is_(None), _O.due_at > _NOW))
    .values(due_at=_NOW)
)
_WAKE_WAITING = _WAKE.where(_O.id.in_(_WAITING))
_WAKE_ON = _WAKE.where(_O.host.in_(_KEYS))
_SAVED_PAIRS = {
    table: among(select(table), table.c.order_id) for table in (tables.order_machines, tables.order_waits)
}
_INSERT_RECORDS = insert(tables.records)

Pairs = set[tuple[str, str]]  # a key and an order


class WorkWrites(Writer):
    """Writes to what is going on and what has been."""

    def _save_orders(self, orders: Sequence[Order]) -> None:
        if not orders:
            return
        self._save(ORDERS, orders)
        machines = {(machine, order.id.upper()) for order in orders for machine in _touched(order)}
        waits = {(group, order.id.upper()) for order in orders for group in _waited_for(order)}
        ids = [order.id.upper() for order in orders]
        self._keep_in_step(tables.order_machines, ids, machines)
        self._keep_in_step(tables.order_waits, ids, waits)

    def _keep_in_step(self, table: Table, orders: Sequence[str], wanted: Pairs) -> None:
        """Make a side table say this of these orders; most saves change nothing there."""
        key, order = table.columns
        saved = {(row[0], row[1]) for row in self._among(_SAVED_PAIRS[table], orders)}
        if gone := saved - wanted:
            this_row = (key == bindparam("this_key"), order == bindparam("this_order"))
            rows = [{"this_key": key_, "this_order": order_} for key_, order_ in gone]
            self._connection.execute(delete(table).where(*this_row), rows)
        if new := wanted - saved:
            rows = [{key.name: key_, order.name: order_} for key_, order_ in sorted(new)]
            self._connection.execute(insert(table), rows)

    def _save_events(self, events: Sequence[Event]) -> None:
        self._save(EVENTS, events)
        # Names only leave an event, so what it announced is all it ever names.
        named = [
            {"machine_key": name_key(resource.name), "event_id": event.id.upper()}
            for event in events
            if event.number > self._meta.number
            for resource in event.resources
        ]
        self._put(tables.event_machines, named)

    def _save_records(self, records: Sequence[Record]) -> None:
        if records:
            self._connection.execute(_INSERT_RECORDS, [RECORDS.write(record) for record in records])

    def _wake(self, *, waiting_for: Iterable[GroupName], on: Iterable[HostName], now: datetime) -> None:
        """Have the engine look at every open order that waits for these groups, or is on these hosts."""
        for statement, keys in ((_WAKE_WAITING, waiting_for), (_WAKE_ON, on)):
            for chunk in chunks(keys):
                self._connection.execute(statement, {"keys": chunk, "now": micros(now)})

    def _wake_all(self, *, now: datetime) -> None:
        """Have the engine look at every open order."""
        self._connection.execute(_WAKE, {"now": micros(now)})


def _touched(order: Order) -> Iterable[str]:
    if not order.open:
        return set()
    live = (stage for stage in order.stages if stage.state is not StageState.DONE)
    touched = {
        step.machine.lower() for stage in live for step in stage.steps if step.state is not StepState.MOOT
    }
    return touched if order.machine is None else touched | {order.machine.lower()}


def _waited_for(order: Order) -> Iterable[str]:
    return {wait.group for wait in order.waiting if wait.group is not None} if order.open else set()
