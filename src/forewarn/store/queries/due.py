"""What the engine asks a snapshot: what is due, and when anything will be."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, ScalarSelect, Text, bindparam, cast, func, select

from forewarn.core.model.group import Group
from forewarn.core.model.order import Order
from forewarn.core.words import OrderId, OrderState
from forewarn.store import tables
from forewarn.store.reads.reader import SELECT_GROUPS, Reader, among
from forewarn.store.rows.stored import ORDERS
from forewarn.store.rows.times import micros, moment_or_none

_O, _G, _A = tables.orders.c, tables.groups.c, tables.group_activity.c
_BY_ACTIVITY = SELECT_GROUPS.join(tables.group_activity, _A.group_name == _G.name)
_OPEN_ORDERS = among(select(_O.id), _O.id).where(tables.IS_OPEN_ORDER)
# A host may be cordoned before anything is started.
_HAS_HOST_STEPS = cast(_O.host_steps, Text) != "[]"
_R = tables.rollouts.c
_AFTER = bindparam("after", type_=tables.TIME)


def _first(column: Column[Any], *where: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(func.min(column)).where(*where).scalar_subquery()


_MOMENTS = select(
    _first(_O.due_at, _O.due_at.is_not(None)),
    _first(_R.due_at, tables.OPEN_ROLLOUT, _R.due_at.is_not(None)),
    _first(_G.ready_at, _G.ready_at > _AFTER),
    _first(_A.last_active),
)


def _by_announcement(row: Sequence[Any]) -> tuple[bool, int]:
    _, announced_at = row
    return announced_at is None, announced_at or 0


class DueMoments(NamedTuple):
    """When something falls due next, of each kind."""

    order: datetime | None
    rollout: datetime | None
    ready: datetime | None  # a group
    oldest_activity: datetime | None  # of the enabled group that has been silent for longest


class DueQueries(Reader):
    """Questions whose cost grows with what is due, never with the fleet."""

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started or failed, or have steps of their hosts, oldest first."""
        begun = _O.state.in_((OrderState.STARTED.value, OrderState.FAILED.value)) | _HAS_HOST_STEPS
        return self._list(ORDERS.read, ORDERS.select().where(tables.OPEN_ORDER, begun).order_by(_O.number))

    def orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now: the longest due, the first announced first.

        Of orders that wait for the same group, the first to be looked at is armed.
        """
        query = select(_O.id, _O.announced_at).where(_O.due_at <= micros(now))
        due = self._all(query.order_by(_O.due_at, _O.number).limit(limit))
        return [row[0] for row in sorted(due, key=_by_announcement)]

    def moments(self, *, after: datetime) -> DueMoments:
        """Return when something falls due next, of each kind; a group that is ready after a moment."""
        row = self._connection.execute(_MOMENTS, {"after": micros(after)}).one()
        return DueMoments(*map(moment_or_none, row))

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        query = _BY_ACTIVITY.where(_A.last_active <= micros(since))
        return self._list(
            self._transaction.read_group, query.order_by(_A.last_active, _A.group_name).limit(limit)
        )

    def open_orders(self, orders: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ids = sorted({order.upper() for order in orders})
        return frozenset(order for (order,) in self._among(_OPEN_ORDERS, ids))
