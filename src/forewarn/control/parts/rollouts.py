"""How rollouts are read, and what is decided about them by."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.model.event import Event
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.emptying import EmptyingInput
from forewarn.core.words import GroupName, HostName, MachineId, MachineName, OrderId


class RolloutQueries(Protocol):
    """Reads rollouts, and what is decided about them by."""

    def find(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; ids in any case."""
        ...

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        ...

    def page_of_open(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts that are not over, newest first, and return the cursor of the next page."""
        ...

    def open(self) -> Sequence[Rollout]:
        """List rollouts that are not over, the oldest first."""
        ...

    def due(self, now: datetime, *, limit: int) -> Sequence[str]:
        """List open rollouts that fall due by now, the longest due first.

        Saving an order makes its rollout due, and any change to the fleet makes those due that are blocked.
        """
        ...

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        ...

    def events_of_orders(self, orders: Sequence[OrderId]) -> Sequence[Event]:
        """List all events of some orders, over ones too, by creation."""
        ...

    def silent_machines(self, hosts: Sequence[HostName]) -> Mapping[MachineId, MachineName]:
        """Find the machines on these hosts that were never seen, as far as that is saved."""
        ...

    def surroundings(self, hosts: Sequence[HostName]) -> EmptyingInput:
        """Load the machines on these hosts, and the room there is for them on all sound hosts."""
        ...

    def survey(
        self, hosts: Sequence[HostName], *, known: Mapping[HostName, Footprint] | None = None
    ) -> HostSurvey:
        """Load what a decision about work on these hosts needs; unknown ones are left out.

        `known` are footprints that need not be counted again.
        """
        ...

    def others_with(
        self, groups: Collection[GroupName], *, besides: Collection[HostName]
    ) -> Mapping[HostName, Footprint]:
        """Find which other hosts take machines and carry some of these groups, and what of them."""
        ...
