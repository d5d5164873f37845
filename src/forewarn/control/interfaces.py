"""What control needs of guests and of external work: the server and the drivers implement it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from forewarn.core.basic_types import EventId, GroupName, MachineId, OrderId
from forewarn.core.model.slice import Sent


class LastPolls(Protocol):
    """When machines polled last, as far as that was not saved at some moment."""

    def __call__(self, machines: Sequence[MachineId], /) -> Mapping[MachineId, datetime]:
        """Return when these machines polled last; those of which nothing is known are left out."""
        ...


class Activity(Protocol):
    """The polls of guests: known in memory first, saved now and then."""

    def pending(self) -> bool:
        """Return whether there is anything to hand over."""
        ...

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over what is new since the last call: groups' and machines' newest polls."""
        ...

    def fresh(self) -> LastPolls:
        """Return the polls that are not handed over by now. Any thread may ask."""
        ...


class UntakenNotices(Protocol):
    """Which machines have been sent an event, as far as that was not handed over at some moment."""

    def __call__(self, event: EventId, /) -> Mapping[MachineId, datetime]:
        """Return when machines were first sent an event."""
        ...


class SentNotices(Protocol):
    """The events that guests are sent: known in memory first, handed over before the rules need them."""

    def untaken_notices(self) -> UntakenNotices:
        """Return what tells of events that are not handed over yet. Any thread may ask."""
        ...

    def has_notices(self) -> bool:
        """Return whether there is anything to hand over."""
        ...

    def take_notices(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        ...


class ExternalReports(Protocol):
    """How long external orders have gone without a report, in real time."""

    def heard(self, order: OrderId, limit: timedelta | None, *, silent_for: timedelta = timedelta()) -> None:
        """Wait for the next report of an order, silent for so long already; None: the usual limit."""
        ...

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, and why that is a failure."""
        ...

    def forget(self, order: OrderId) -> None:
        """Wait for no more reports of an order."""
        ...


class GuestActivity(Activity, SentNotices, Protocol):
    """What guests have done and were sent, while it is in memory alone."""
