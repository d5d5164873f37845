"""What the engine asks a snapshot: what is due, and when anything will be."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select

from forewarn.core.model.group import Group
from forewarn.core.model.order import Order
from forewarn.core.words import OrderId
from forewarn.store import tables
from forewarn.store.reads.reader import VERSIONED_GROUP, Reader
from forewarn.store.rows.times import micros, moment_or_none
from forewarn.store.rows.work_rows import ORDER_COLUMNS, order_of

_O, _G = tables.orders.c, tables.groups.c


class DueReads(Reader):
    """Questions whose cost grows with what is due, never with the fleet."""

    def driven_orders(self, *, driver: str) -> Sequence[Order]:
        """List open orders whose work a driver does, oldest first."""
        query = select(*ORDER_COLUMNS).where(_O.ended_at.is_(None), _O.driver == driver).order_by(_O.number)
        return [order_of(row) for row in self._all(query)]

    def due_orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now, the longest due first."""
        query = select(_O.id).where(_O.due_at <= micros(now))
        return self._connection.scalars(query.order_by(_O.due_at, _O.number).limit(limit)).all()

    def next_order_due(self) -> datetime | None:
        """Say when the next open order wants to be looked at."""
        query = select(func.min(_O.due_at)).where(_O.due_at.is_not(None))
        return moment_or_none(self._connection.scalar(query))

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        query = select(*VERSIONED_GROUP).where(_G.silent_since <= micros(since))
        return self._groups_of(self._all(query.order_by(_G.silent_since, _G.name).limit(limit)))

    def oldest_activity(self) -> datetime | None:
        """Say when the enabled group that has been silent for longest was last active."""
        query = select(func.min(_G.silent_since)).where(_G.silent_since.is_not(None))
        return moment_or_none(self._connection.scalar(query))

    def next_group_ready(self, *, after: datetime) -> datetime | None:
        """Say when the next group becomes ready, of those that become so after a moment."""
        query = select(func.min(_G.ready_at)).where(_G.ready_at > micros(after))
        return moment_or_none(self._connection.scalar(query))
