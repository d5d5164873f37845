"""Making orders and rollouts due that wait for what was saved: the engine looks at them again."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, bindparam, or_, select, update

from forewarn.core.model.changes import Changes
from forewarn.core.model.constraints import Waiting
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_found, one_of
from forewarn.store.reads.reader import Reader, chunks
from forewarn.store.rows.stored import STORED
from forewarn.store.rows.times import micros

_NOW = bindparam("now", type_=tables.TIME)
_KEYS = key_list("keys")


def _make_due(table: Table, *those: ColumnElement[bool]) -> Update:
    """Make some due; those that are due already stay where they are in the queue."""
    due_at = table.c.due_at
    not_yet = or_(due_at.is_(None), due_at > _NOW)
    return update(table).where(*those, not_yet).values(due_at=_NOW)


_O, _R, _WAITS = tables.orders.c, tables.rollouts.c, tables.order_waits.c
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
            woken += self._wake_those(_ORDERS_ON, changes.hosts_with_news, now)
        if changes.machine_found_off:
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
