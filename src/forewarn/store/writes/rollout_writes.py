"""Waking the rollouts that wait for what was saved."""

from typing import Any

from sqlalchemy import BindParameter, bindparam, or_, select, update

from forewarn.core.model.changes import Changes
from forewarn.core.model.waiting import Waiting
from forewarn.store import tables
from forewarn.store.rows.stored import STORED
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import Writer

_R = tables.rollouts.c
_NOW = bindparam("now", type_=tables.TIME)
_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
_WAKE = (
    update(tables.rollouts)
    .where(tables.OPEN_ROLLOUT, or_(_R.due_at.is_(None), _R.due_at > _NOW))
    .values(due_at=_NOW)
)
_WAKE_THESE = _WAKE.where(_R.id.in_(_KEYS))
_BLOCKED = select(_R.id, _R.waiting).where(tables.OPEN_ROLLOUT, _R.blocked)
_WAKE_BLOCKED = _WAKE.where(_R.blocked)


class RolloutWrites(Writer):
    """Writes to when rollouts are due."""

    def _wake_rollouts(self, changes: Changes) -> None:
        """Have the engine look at the rollouts of saved orders, and at those that wait for what has changed.

        Looking at one costs as much as its hosts carry, so it is not done for nothing.
        """
        mine = sorted({order.terms.rollout for order in changes.orders if order.terms.rollout is not None})
        if mine:
            self._connection.execute(_WAKE_THESE, {"keys": mine, "now": micros(changes.now)})
        if changes.wake_all:
            self._connection.execute(_WAKE_BLOCKED, {"now": micros(changes.now)})
        elif changes.stirred:
            eased = [id_ for id_, why in self._all(_BLOCKED) if _names(why) & changes.stirred]
            if eased:
                self._connection.execute(_WAKE_THESE, {"keys": eased, "now": micros(changes.now)})


def _names(waiting: list[dict[str, Any]]) -> set[str]:
    """Name the groups and hosts that a rollout waits for."""
    return {wait.group or wait.what for wait in STORED.read(tuple[Waiting, ...], waiting)}
