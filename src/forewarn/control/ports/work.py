"""How orders, events and rollouts are read."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Sent
from forewarn.core.model.survey import HostSurvey
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    OrderId,
    OrderState,
    ProjectName,
)


class OrderReads(Protocol):
    """Reads orders and their events."""

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        ...

    def orders(
        self, *, state: OrderState | None, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first, open or over."""
        ...

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        ...

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ...

    def driven_orders(self, *, driver: str) -> Sequence[Order]:
        """List open orders whose work a driver does, oldest first."""
        ...

    def due_orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now, the longest due first."""
        ...

    def next_order_due(self) -> datetime | None:
        """Say when the next open order wants to be looked at."""
        ...

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        ...

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        ...

    def events(self, *, after: str | None, limit: int) -> tuple[Sequence[Event], str | None]:
        """List the listed events of the whole fleet, by creation."""
        ...

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        ...

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ...

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        ...

    def notices(self, events: Sequence[EventId]) -> Sent:
        """Say when machines were first sent these events, as far as that is saved."""
        ...


class RolloutReads(Protocol):
    """Reads rollouts."""

    def rollout(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; ids in any case."""
        ...

    def rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        ...

    def page_of_open_rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts that are not over, newest first, and give the cursor of the next page."""
        ...

    def open_rollouts(self) -> Sequence[Rollout]:
        """List rollouts that are not over, the oldest first."""
        ...

    def due_rollouts(self, now: datetime, *, limit: int) -> Sequence[str]:
        """List open rollouts that want to be looked at by now, the longest due first.

        Saving an order makes its rollout due, and any change to the fleet makes those due that are blocked.
        """
        ...

    def next_rollout_due(self) -> datetime | None:
        """Say when the next open rollout wants to be looked at."""
        ...

    def survey(self, hosts: Sequence[HostName]) -> HostSurvey:
        """Load what a decision about work on these hosts needs; unknown ones are left out."""
        ...
