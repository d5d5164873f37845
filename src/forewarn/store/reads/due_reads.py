"""What the engine asks a snapshot: what is due, and when anything will be."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from forewarn.core.model.group import Group
from forewarn.core.model.order import Order
from forewarn.core.words import OrderId, OrderState
from forewarn.store import tables
from forewarn.store.reads.reader import SELECT_GROUPS, Reader
from forewarn.store.rows.stored import ORDERS
from forewarn.store.rows.times import micros

_O, _G, _A = tables.orders.c, tables.groups.c, tables.group_activity.c
_BY_ACTIVITY = SELECT_GROUPS.join(tables.group_activity, _A.group_name == _G.name)


class DueReads(Reader):
    """Questions whose cost grows with what is due, never with the fleet."""

    def driven_orders(self, *, driver: str) -> Sequence[Order]:
        """List open orders whose work a driver does, oldest first."""
        query = ORDERS.select().where(tables.OPEN_ORDER, _O.driver == driver)
        return self._list(ORDERS.read, query.order_by(_O.number))

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started or failed, oldest first."""
        begun = _O.state.in_((OrderState.STARTED.value, OrderState.FAILED.value))
        return self._list(ORDERS.read, ORDERS.select().where(tables.OPEN_ORDER, begun).order_by(_O.number))

    def due_orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now, the longest due first."""
        query = select(_O.id).where(_O.due_at <= micros(now))
        return self._connection.scalars(query.order_by(_O.due_at, _O.number).limit(limit)).all()

    def next_order_due(self) -> datetime | None:
        """Return when the next open order wants to be looked at."""
        return self._earliest(_O.due_at, _O.due_at.is_not(None))

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        query = _BY_ACTIVITY.where(_A.last_active <= micros(since))
        return self._list(self._group, query.order_by(_A.last_active, _A.group_name).limit(limit))

    def oldest_activity(self) -> datetime | None:
        """Return when the enabled group that has been silent for longest was last active."""
        return self._earliest(_A.last_active)

    def next_group_ready(self, *, after: datetime) -> datetime | None:
        """Return when the next group becomes ready, of those that become so after a moment."""
        return self._earliest(_G.ready_at, _G.ready_at > micros(after))
