"""Saving decisions: orders, events, records, and which orders and rollouts become due."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from hashlib import sha256
from json import dumps
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, bindparam, delete, func, insert, or_, select, update

from forewarn.core.basic_types import StageKind, StageState, StepState
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import ROOM, Changes
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.footprint import NO_MOVES
from forewarn.core.model.order import Order
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.key_lists import chunks, key_list, one_found, one_of
from forewarn.store.reads.open_transaction import OpenTransaction, Queries
from forewarn.store.rows.mapping import micros
from forewarn.store.rows.stored import (
    EVENTS,
    HOLDS,
    ORDERS,
    PROJECTS,
    RECORDS,
    ROLLOUTS,
    STORED,
    Meta,
    name_key,
)
from forewarn.store.saved import SavedChanges
from forewarn.store.writes.fleet_writes import save_fleet, save_tombstones
from forewarn.store.writes.writer import add_rows, put, put_rows, write_rows

_O, _R, _WAITS = tables.orders.c, tables.rollouts.c, tables.order_waits.c
_PAIRS = (tables.order_machines, tables.order_waits)  # tables of a key and an order
_INSERT_PAIRS = {table: insert(table) for table in _PAIRS}
_DELETE_PAIRS = {
    table: delete(table).where(
        table.columns[0] == bindparam("this_key"), table.columns[1] == bindparam("this_order")
    )
    for table in _PAIRS
}
_INSERT_RECORDS = insert(tables.records)


def _save_work(tx: OpenTransaction, changes: Changes) -> None:
    put(tx, ORDERS, changes.orders)
    _save_pairs(tx, tables.order_machines, changes, _machines_of)
    _save_pairs(tx, tables.order_waits, changes, _groups_awaited_by)
    put(tx, EVENTS, changes.events)
    # Machines only ever leave an event, so the announcement has all of them.
    named = [
        {"machine_key": name_key(resource.name), "event_id": event.id.upper()}
        for event in changes.events
        if event.number > tx.meta.number
        for resource in event.resources
    ]
    put_rows(tx, tables.event_machines, named)
    if changes.records:
        write_rows(tx, _INSERT_RECORDS, [RECORDS.write(record) for record in changes.records])


def _save_pairs(
    tx: OpenTransaction, table: Table, changes: Changes, keys: Callable[[Order], Iterable[str]]
) -> None:
    """Change the rows of a side table that differ; most saves change none."""
    before = {(key, each.id.upper()) for each in changes.orders_before.values() for key in keys(each)}
    after = {(key, each.id.upper()) for each in changes.orders for key in keys(each)}
    if removed := before - after:
        rows = [{"this_key": key, "this_order": order} for key, order in sorted(removed)]
        tx.connection.execute(_DELETE_PAIRS[table], rows)
    if added := after - before:
        names = table.columns.keys()
        write_rows(tx, _INSERT_PAIRS[table], [dict(zip(names, pair, strict=True)) for pair in sorted(added)])


def _machines_of(order: Order) -> Iterable[str]:
    if not order.open:
        return set()
    # Machines that an evacuation will bring back stay with the order until it is over.
    live = (
        stage
        for stage in order.stages
        if stage.state is not StageState.DONE or (order.terms.returning and stage.kind is StageKind.EVACUATE)
    )
    # The event of a step that began and was cancelled names the machine until the event is over.
    touched = {
        step.machine.lower()
        for stage in live
        for step in stage.steps
        if step.state is not StepState.MOOT or step.begun_at is not None
    }
    return touched if order.machine is None else touched | {order.machine.lower()}


def _groups_awaited_by(order: Order) -> Iterable[str]:
    if not order.open:
        return set()
    groups = {wait.group for wait in order.waiting if wait.group is not None}
    return groups | {ROOM} if any(wait.room for wait in order.waiting) else groups


# Orders and rollouts that become due, so that the engine examines them again

_NOW = bindparam("now", type_=tables.TIME)
_KEYS = key_list("keys")


def _due_now(table: Table, *conditions: ColumnElement[bool]) -> Update:
    """Make rows due; rows that are due already keep their place in the queue."""
    due_at = table.c.due_at
    return update(table).where(*conditions, or_(due_at.is_(None), due_at > _NOW)).values(due_at=_NOW)


_ALL_ORDERS = _due_now(tables.orders, tables.OPEN_ORDER)
_ORDERS_WAITING = _due_now(
    tables.orders,
    tables.IS_OPEN_ORDER,
    one_found(_O.id, select(_WAITS.order_id).where(one_of(_WAITS.group_name, _KEYS))),
)
_ORDERS_ON = _due_now(tables.orders, one_of(tables.HOST_OF_OPEN_ORDER, _KEYS))
_ALL_ROLLOUTS = _due_now(tables.rollouts, tables.OPEN_ROLLOUT)
_ROLLOUTS_BY_ID = _due_now(tables.rollouts, tables.OPEN_ROLLOUT, one_of(_R.id, _KEYS))
_REASONS = select(_R.id, _R.waiting).where(tables.OPEN_ROLLOUT, _R.blocked)


def _make_due(tx: OpenTransaction, changes: Changes) -> bool:
    """Make the orders and rollouts due that may continue after these changes; return whether any are.

    The cost of examining a rollout grows with its hosts, so a rollout becomes due only for a reason.
    """
    now = {"now": micros(changes.now)}
    made_due = 0
    if changes.wake_all:
        made_due += tx.connection.execute(_ALL_ORDERS, now).rowcount
    if changes.machine_stopped_outside:
        made_due += tx.connection.execute(_ALL_ROLLOUTS, now).rowcount
    by_keys: list[tuple[Update, Iterable[str]]] = [(_ROLLOUTS_BY_ID, sorted(_rollouts_of(tx, changes)))]
    if not changes.wake_all:
        by_keys += (_ORDERS_WAITING, changes.relieved_groups), (_ORDERS_ON, changes.hosts_to_recheck)
    for statement, keys in by_keys:
        for chunk in chunks(keys):
            made_due += tx.connection.execute(statement, now | {"keys": chunk}).rowcount
    return bool(made_due)


def _rollouts_of(tx: OpenTransaction, changes: Changes) -> set[str]:
    """Find the rollouts that these changes belong to, or that may wait for them."""
    own = {order.terms.rollout for order in changes.orders if order.terms.rollout is not None}
    every, changed = changes.wake_all or changes.budgets_tightened, changes.changed_groups_and_hosts
    if not tx.meta.blocked_rollouts or not (every or changed):
        return own
    return own | {id_ for id_, reasons in tx.rows(_REASONS) if every or _awaited(reasons) & changed}


def _awaited(reasons: list[dict[str, Any]]) -> set[str]:
    """Return the groups and hosts that a rollout waits for."""
    return {wait.group or wait.what for wait in STORED.read(tuple[Waiting, ...], reasons)}


_COUNT_BLOCKED = select(func.count()).where(tables.OPEN_ROLLOUT, tables.rollouts.c.blocked)


class ChangeSaving(Queries):
    """Saves decisions and notices."""

    def save(self, changes: Changes) -> Changes:
        """Save the changes of a decision, and return them with the numbers that they were assigned.

        Unavailable if they cannot be saved, Conflict if the decision used a state that is no longer current.
        """
        tx = self._tx
        before = tx.meta.number
        if changes.as_of is not None and changes.as_of != before:
            raise Conflict("another call has saved changes meanwhile: try again")
        changes = changes.numbered(after=before)
        if changes.empty:
            return changes
        tx.found.clear()
        tx.batch.prefetched.invalidate(changes)
        number = _newest(changes, before)
        save_fleet(tx, changes, number=number)
        forgotten = save_tombstones(tx, changes, number=number)
        _save_work(tx, changes)
        tallies = [{"kind": kind.value, "machines": count} for kind, count in changes.tallies.items()]
        add_rows(tx, tables.tallies, tallies)
        add_rows(tx, tables.promises, [asdict(counted) for counted in changes.promises])
        wakes = _make_due(tx, changes)
        put(tx, ROLLOUTS, changes.rollouts)
        tx.batch.meta = replace(_meta_after(tx, changes, number), forgotten=forgotten)
        tx.batch.saved.append(SavedChanges(before=before, number=number, changes=changes, wakes=wakes))
        return changes

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; the earliest time stays."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        self._tx.batch.prefetched.forget_notices(sent)
        put_rows(self._tx, tables.notices, rows, keep=("sent_at",))


def _meta_after(tx: OpenTransaction, changes: Changes, number: int) -> Meta:
    meta = replace(tx.meta, number=number, reached=tx.reached_by(changes.now))
    if changes.moves != NO_MOVES:
        meta = replace(meta, pace=meta.pace.plus(changes.moves))
    if changes.defaults is not None:
        meta = replace(meta, defaults=changes.defaults)
    if changes.projects or changes.holds or changes.removed_projects or changes.removed_holds:
        meta = replace(meta, settings_version=_settings_version(meta.settings_version, changes))
    if changes.rollouts:
        meta = replace(meta, blocked_rollouts=tx.connection.scalar(_COUNT_BLOCKED) or 0)
    return meta


def _newest(changes: Changes, before: int) -> int:
    """Return the number under which readers of the feed find these changes."""
    newest = max((record.number for record in changes.records), default=before)
    boards_must_know = (
        changes.groups or changes.machines or changes.removed_groups or changes.removed_machines
    )
    # A change without a record needs a number too: readers that have the last number would never see it.
    return before + 1 if newest == before and boards_must_know else newest


def _settings_version(version: str, changes: Changes) -> str:
    """Return a version that only this state of projects and holds ever has."""
    written = [
        *map(PROJECTS.write, changes.projects),
        *map(HOLDS.write, changes.holds),
        *(changes.removed_projects, changes.removed_holds),
    ]
    return sha256(f"{version} {dumps(written)}".encode()).hexdigest()
