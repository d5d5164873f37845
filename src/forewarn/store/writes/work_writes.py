"""Saving orders, events and records."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Table, bindparam, delete, insert, select

from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.words import StageState, StepState
from forewarn.store import tables
from forewarn.store.reads.reader import among
from forewarn.store.rows.stored import EVENTS, ORDERS, RECORDS, name_key
from forewarn.store.writes.writer import Writer

_SAVED_PAIRS = {
    table: among(select(table), table.c.order_id) for table in (tables.order_machines, tables.order_waits)
}
_INSERT_RECORDS = insert(tables.records)

Pairs = set[tuple[str, str]]  # a key and an order


class WorkWrites(Writer):
    """Writes to orders, events and records."""

    def _save_orders(self, orders: Sequence[Order]) -> None:
        if not orders:
            return
        self._save(ORDERS, orders)
        machines = {(machine, order.id.upper()) for order in orders for machine in _touched(order)}
        waits = {(group, order.id.upper()) for order in orders for group in _waited_for(order)}
        ids = [order.id.upper() for order in orders]
        self._update_pairs(tables.order_machines, ids, machines)
        self._update_pairs(tables.order_waits, ids, waits)

    def _update_pairs(self, table: Table, orders: Sequence[str], wanted: Pairs) -> None:
        """Make a side table hold these pairs of these orders; most saves change nothing there."""
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
