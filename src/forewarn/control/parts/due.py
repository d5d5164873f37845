"""What the engine asks: what is due, and when anything will be."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from forewarn.core.model.group import Group
from forewarn.core.model.order import Order
from forewarn.core.words import OrderId


class DueMoments(NamedTuple):
    """When something falls due next, of each kind."""

    order: datetime | None
    rollout: datetime | None
    ready: datetime | None  # a group
    oldest_activity: datetime | None  # of the enabled group that has been silent for longest


class DueQueries(Protocol):
    """Reads what the engine goes by."""

    def orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that fall due by now, the longest due first."""
        ...

    def moments(self, *, after: datetime) -> DueMoments:
        """Return when something falls due next, of each kind; a group that is ready after a moment."""
        ...

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started or failed, oldest first."""
        ...

    def open_orders(self, orders: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ...

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        ...
