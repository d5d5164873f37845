"""Interfaces that control needs; the server, the guest endpoint and the external driver implement them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.basic_types import EventId, GroupName, MachineId, OrderId
from forewarn.core.model.slice import Sent

# Returns when these machines last polled, from the polls that were unsaved when the function was made.
LastPolls: TypeAlias = Callable[[Sequence[MachineId]], Mapping[MachineId, datetime]]
# Returns when each machine first received an event, from the notices that were unsaved at that time.
UntakenNotices: TypeAlias = Callable[[EventId], Mapping[MachineId, datetime]]


class Activity(Protocol):
    """The polls of guests, which are in memory first and saved later."""

    def pending(self) -> bool:
        """Return whether there are new polls to take."""
        ...

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Remove and return the newest poll of each group and machine since the last call."""
        ...

    def fresh(self) -> LastPolls:
        """Return the polls that were not taken yet. Any thread may call it."""
        ...


class SentNotices(Protocol):
    """The events that guests have received, which are in memory until the next transaction."""

    def untaken_notices(self) -> UntakenNotices:
        """Return the notices that were not taken yet. Any thread may call it."""
        ...

    def has_notices(self) -> bool:
        """Return whether there are new notices to take."""
        ...

    def take_notices(self) -> Sent:
        """Remove and return when machines first received each event, since the last call."""
        ...


class ExternalReports(Protocol):
    """The time since the last report of each external order, in real time."""

    def heard(self, order: OrderId, limit: timedelta | None, *, silent_for: timedelta = timedelta()) -> None:
        """Restart the timeout of an order's next report. `limit` None: the default timeout.

        `silent_for` is how much of the timeout has passed already.
        """
        ...

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders whose report timed out, each with the reason to fail it with."""
        ...

    def forget(self, order: OrderId) -> None:
        """Stop the timeout of an order."""
        ...


class GuestActivity(Activity, SentNotices, Protocol):
    """Polls and notices that are in memory only."""
