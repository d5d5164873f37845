"""Saving orders, events and records."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Table, bindparam, delete, insert

from forewarn.core.model.changes import ROOM, Changes
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.words import StageKind, StageState, StepState
from forewarn.store import tables
from forewarn.store.many_rows import execute_many
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import EVENTS, ORDERS, RECORDS, name_key
from forewarn.store.writes.writer import put, put_rows, write_rows

_PAIRS = (tables.order_machines, tables.order_waits)  # of a key and an order
_INSERT_PAIRS = {table: insert(table) for table in _PAIRS}
_DELETE_PAIRS = {
    table: delete(table).where(
        table.columns[0] == bindparam("this_key"), table.columns[1] == bindparam("this_order")
    )
    for table in _PAIRS
}
_INSERT_RECORDS = insert(tables.records)

Pairs = set[tuple[str, str]]  # a key and an order


class WorkWrites(Reader):
    """Writes to orders, events and records."""

    def save(self, changes: Changes) -> None:
        """Save what changed of the work, and what is recorded."""
        self._save_orders(changes)
        self._save_events(changes.events)
        self._save_records(changes.records)

    def _save_orders(self, changes: Changes) -> None:
        put(self._connection, ORDERS, changes.orders)
        for table, keys in ((tables.order_machines, _touched), (tables.order_waits, _waited_for)):
            before = {(key, each.id.upper()) for each in changes.orders_before.values() for key in keys(each)}
            after = {(key, each.id.upper()) for each in changes.orders for key in keys(each)}
            self._change_pairs(table, before, after)

    def _change_pairs(self, table: Table, before: Pairs, after: Pairs) -> None:
        """Make a side table hold other pairs than before; most saves change nothing there."""
        key, order = table.columns
        if gone := before - after:
            rows = [{"this_key": key_, "this_order": order_} for key_, order_ in sorted(gone)]
            execute_many(self._connection, _DELETE_PAIRS[table], rows)
        if new := after - before:
            rows = [{key.name: key_, order.name: order_} for key_, order_ in sorted(new)]
            write_rows(self._connection, _INSERT_PAIRS[table], rows)

    def _save_events(self, events: Sequence[Event]) -> None:
        put(self._connection, EVENTS, events)
        # Names only leave an event, so what it announced is all it ever names.
        named = [
            {"machine_key": name_key(resource.name), "event_id": event.id.upper()}
            for event in events
            if event.number > self._meta.number
            for resource in event.resources
        ]
        put_rows(self._connection, tables.event_machines, named)

    def _save_records(self, records: Sequence[Record]) -> None:
        if records:
            write_rows(self._connection, _INSERT_RECORDS, [RECORDS.write(record) for record in records])


def _touched(order: Order) -> Iterable[str]:
    if not order.open:
        return set()
    # Whoever has left and is to be moved back is still its concern, also while something else keeps it away.
    live = (
        stage
        for stage in order.stages
        if stage.state is not StageState.DONE or (order.terms.returning and stage.kind is StageKind.EVACUATE)
    )
    # One that was begun and called off is named in its event until that is over.
    touched = {
        step.machine.lower()
        for stage in live
        for step in stage.steps
        if step.state is not StepState.MOOT or step.begun_at is not None
    }
    return touched if order.machine is None else touched | {order.machine.lower()}


def _waited_for(order: Order) -> Iterable[str]:
    if not order.open:
        return set()
    groups = {wait.group for wait in order.waiting if wait.group is not None}
    return groups | {ROOM} if any(wait.room for wait in order.waiting) else groups
