"""How is read what no project has a share in: what falls due, rollouts, tokens."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from forewarn.core.access import Token
from forewarn.core.model.absence import Absence
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.service_time import TimeKind
from forewarn.core.model.survey import HostSurvey
from forewarn.core.words import HostName, MachineId, MachineName, OrderId


class DueMoments(NamedTuple):
    """When something falls due next, of each kind."""

    order: datetime | None
    rollout: datetime | None
    ready: datetime | None  # a group
    oldest_activity: datetime | None  # of the enabled group that has been silent for longest


class DueQueries(Protocol):
    """Reads what the engine goes by."""

    def due_orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that fall due by now, the longest due first."""
        ...

    def due_moments(self, *, after: datetime) -> DueMoments:
        """Return when something falls due next, of each kind; a group that is ready after a moment."""
        ...

    def driven_orders(self, *, driver: str) -> Sequence[Order]:
        """List open orders whose work a driver does, oldest first."""
        ...

    def orders_under_way(self) -> Sequence[Order]:
        """List open orders that have started or failed, oldest first."""
        ...

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ...

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        ...

    def reached(self) -> datetime | None:
        """Return the service time reached; None in a new store."""
        ...

    def time_kind(self) -> TimeKind | None:
        """Return whose time the store lives in; None in a new store, and in one of an older forewarn."""
        ...

    def backup_of(self) -> datetime | None:
        """Return the time that a backup has everything up to; None if this is none, or was served."""
        ...

    def present_at(self) -> datetime | None:
        """Return when the service was last known to run; None in a new store."""
        ...

    def absences(self) -> Sequence[Absence]:
        """Return the stretches in which guests could not be heard, as far as they matter, in order."""
        ...

    def grace(self) -> Grace | None:
        """Return how unapproved starts are held, if they are."""
        ...


class RolloutQueries(Protocol):
    """Reads rollouts, and what is decided about them by."""

    def rollout(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; ids in any case."""
        ...

    def rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        ...

    def page_of_open_rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts that are not over, newest first, and return the cursor of the next page."""
        ...

    def open_rollouts(self) -> Sequence[Rollout]:
        """List rollouts that are not over, the oldest first."""
        ...

    def due_rollouts(self, now: datetime, *, limit: int) -> Sequence[str]:
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

    def survey(self, hosts: Sequence[HostName]) -> HostSurvey:
        """Load what a decision about work on these hosts needs; unknown ones are left out."""
        ...


class TokenQueries(Protocol):
    """Reads tokens."""

    def tokens(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        ...

    def tokens_in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        ...

    def has_tokens(self) -> bool:
        """Return whether a token was ever made."""
        ...
