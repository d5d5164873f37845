"""Saving what was decided: orders, events, records, and what falls due with them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from json import dumps
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, bindparam, delete, func, insert, or_, select, update

from forewarn.core.basic_types import StageKind, StageState, StepState
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import ROOM, Changes
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import NO_MOVES
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_found, one_of
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.reads.reader import Reader, chunks
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
from forewarn.store.writes.fleet_writes import FleetWrites, Tombstones
from forewarn.store.writes.writer import add_rows, put, put_rows, write_rows

_O, _R, _WAITS = tables.orders.c, tables.rollouts.c, tables.order_waits.c
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
            self._connection.execute(_DELETE_PAIRS[table], rows)
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


# The engine looks at them again

_NOW = bindparam("now", type_=tables.TIME)
_KEYS = key_list("keys")


def _make_due(table: Table, *those: ColumnElement[bool]) -> Update:
    """Make some due; those that are due already stay where they are in the queue."""
    due_at = table.c.due_at
    not_yet = or_(due_at.is_(None), due_at > _NOW)
    return update(table).where(*those, not_yet).values(due_at=_NOW)


_ALL_ORDERS = _make_due(tables.orders, tables.OPEN_ORDER)
_ORDERS_WAITING = _make_due(
    tables.orders,
    tables.IS_OPEN_ORDER,
    one_found(_O.id, select(_WAITS.order_id).where(one_of(_WAITS.group_name, _KEYS))),
)
_ORDERS_ON = _make_due(tables.orders, one_of(tables.HOST_OF_OPEN_ORDER, _KEYS))
_ALL_ROLLOUTS = _make_due(tables.rollouts, tables.OPEN_ROLLOUT)
_ROLLOUTS_BY_ID = _make_due(tables.rollouts, tables.OPEN_ROLLOUT, one_of(_R.id, _KEYS))
_REASONS = select(_R.id, _R.waiting).where(tables.OPEN_ROLLOUT, _R.blocked)


class Waking(Reader):
    """Writes to when orders and rollouts are due."""

    def wake(self, changes: Changes) -> bool:
        """Make due what may go on after these changes; return whether there is anything.

        Looking at a rollout costs as much as its hosts carry, so it is not done for nothing.
        """
        now = {"now": micros(changes.now)}
        if changes.wake_all:
            woken = self._connection.execute(_ALL_ORDERS, now).rowcount
        else:
            woken = self._wake_those(_ORDERS_WAITING, changes.relieved_groups, now)
            woken += self._wake_those(_ORDERS_ON, changes.hosts_to_recheck, now)
        if changes.machine_stopped_outside:
            woken += self._connection.execute(_ALL_ROLLOUTS, now).rowcount
        woken += self._wake_those(_ROLLOUTS_BY_ID, sorted(self._awakened_rollouts(changes)), now)
        return bool(woken)

    def _awakened_rollouts(self, changes: Changes) -> set[str]:
        """Find the rollouts that these changes are part of, or that may wait for them."""
        own = {order.terms.rollout for order in changes.orders if order.terms.rollout is not None}
        if not self._meta.blocked_rollouts:
            return own
        every, changed = changes.wake_all or changes.budgets_tightened, changes.changed_groups_and_hosts
        if not every and not changed:
            return own
        waiting = {id_ for id_, reasons in self._all(_REASONS) if every or _awaited(reasons) & changed}
        return own | waiting

    def _wake_those(self, statement: Update, keys: Iterable[str], now: dict[str, int]) -> int:
        return sum(
            self._connection.execute(statement, now | {"keys": chunk}).rowcount for chunk in chunks(keys)
        )


def _awaited(reasons: list[dict[str, Any]]) -> set[str]:
    """Return the groups and hosts that a rollout waits for."""
    return {wait.group or wait.what for wait in STORED.read(tuple[Waiting, ...], reasons)}


_COUNT_BLOCKED = select(func.count()).where(tables.OPEN_ROLLOUT, tables.rollouts.c.blocked)


class ChangeSaving(Reader):
    """Saves what was decided, and what guests were sent."""

    def __init__(self, transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._fleet, self._work = FleetWrites(transaction), WorkWrites(transaction)
        self._tombstones, self._waking = Tombstones(transaction), Waking(transaction)

    def save(self, changes: Changes) -> Changes:
        """Save what was decided, and return it with the numbers that it was given.

        Unavailable if it cannot be saved, Conflict if it was decided on what is saved no longer.
        """
        before = self._meta.number
        if changes.as_of is not None and changes.as_of != before:
            raise Conflict("somebody else has saved something meanwhile: try again")
        changes = changes.numbered(after=before)
        if changes.empty:
            return changes
        self._transaction.found.clear()
        self._transaction.loaded.follow(changes)
        number = _newest(changes, before)
        self._fleet.save(changes, number=number)
        forgotten = self._tombstones.bury(changes, number=number)
        self._work.save(changes)
        tallies = [{"kind": kind.value, "machines": count} for kind, count in changes.tallies.items()]
        add_rows(self._connection, tables.tallies, tallies)
        add_rows(self._connection, tables.promises, [asdict(counted) for counted in changes.promises])
        wakes = self._waking.wake(changes)
        put(self._connection, ROLLOUTS, changes.rollouts)
        self._transaction.keep(replace(self._meta_after(changes, number), forgotten=forgotten))
        self._transaction.saved.append(
            SavedChanges(before=before, number=number, changes=changes, wakes=wakes)
        )
        return changes

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        self._transaction.loaded.forget_notices(sent)
        put_rows(self._connection, tables.notices, rows, keep=("sent_at",))

    def _meta_after(self, changes: Changes, number: int) -> Meta:
        meta = replace(self._meta, number=number, reached=self._transaction.reached_by(changes.now))
        if changes.moves != NO_MOVES:
            meta = replace(meta, pace=meta.pace.plus(changes.moves))
        if changes.defaults is not None:
            meta = replace(meta, defaults=changes.defaults)
        if changes.projects or changes.holds or changes.removed_projects or changes.removed_holds:
            meta = replace(meta, settings_version=_version_after(meta.settings_version, changes))
        if changes.rollouts:
            meta = replace(meta, blocked_rollouts=self._connection.scalar(_COUNT_BLOCKED) or 0)
        return meta


def _newest(changes: Changes, before: int) -> int:
    """Return the number by which readers of the feed will find changes that are numbered."""
    newest = max((record.number for record in changes.records), default=before)
    boards_must_know = (
        changes.groups or changes.machines or changes.removed_groups or changes.removed_machines
    )
    # A change without a record needs a number too, or it would hide behind the last one.
    return before + 1 if newest == before and boards_must_know else newest


def _version_after(version: str, changes: Changes) -> str:
    """Return a text that stands for the projects and holds after these changes, and for no others ever."""
    written = [
        *map(PROJECTS.write, changes.projects),
        *map(HOLDS.write, changes.holds),
        *(changes.removed_projects, changes.removed_holds),
    ]
    return sha256(f"{version} {dumps(written)}".encode()).hexdigest()
