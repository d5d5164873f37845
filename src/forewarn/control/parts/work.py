"""How orders and events are read."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import MonthlyPromises
from forewarn.core.model.slice import Sent
from forewarn.core.words import EventId, HostName, MachineName, OrderId, OrderState, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Which orders are asked for; None means any."""

    state: OrderState | None = None
    only_open: bool = False
    host: HostName | None = None  # those on it, and open ones on machines that it carries
    machine: MachineName | None = None  # those that it was ordered for, told of, or is to be touched by


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are asked for; None means any."""

    past: bool = False  # those that are over too
    begins: str = ""  # how their ids do
    host: HostName | None = None  # those of orders on it, and of open ones on machines that it carries
    machine: MachineName | None = None  # those that named it
    since: datetime | None = None  # those that were not over by then
    until: datetime | None = None  # those that were announced before


ANY_ORDER = OrderFilter()
CURRENT_EVENTS = EventFilter()


class WorkQueries(Protocol):
    """Reads orders and events of a scope."""

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case.

        A project finds its own, and those of hosts that its machines have had events of.
        """
        ...

    def orders(
        self, wanted: OrderFilter = ANY_ORDER, *, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first."""
        ...

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        ...

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        ...

    def events(
        self, wanted: EventFilter = CURRENT_EVENTS, *, after: str | None, limit: int
    ) -> tuple[Sequence[Event], str | None]:
        """List listed events, by creation; or past ones too, newest first."""
        ...

    def projects_of_events(self, events: Sequence[EventId]) -> Mapping[EventId, ProjectName]:
        """Return whose these events are; of past ones as long as the record of their announcement is kept."""
        ...

    def simulated_events(self, events: Sequence[EventId]) -> Set[EventId]:
        """Return those of these events for which nothing is really done."""
        ...

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        ...

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        ...

    def deferrals(self, events: Sequence[EventId]) -> Mapping[EventId, Sequence[datetime]]:
        """Return when those of these events that were deferred were, first to last."""
        ...

    def promises(
        self, *, month: str | None = None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """List what became of promises by project and month: of all months, or of one."""
        ...

    def notices(self, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, as far as that is saved."""
        ...

    def absences(self) -> Sequence[Absence]:
        """Return the recent stretches in which guests could not see events, in order."""
        ...
