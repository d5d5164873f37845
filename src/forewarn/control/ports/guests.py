"""What the guest endpoint knows and the store does not yet."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.model.slice import Sent
from forewarn.core.words import EventId, GroupName, MachineId


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


class SentSoFar(Protocol):
    """Which machines have been sent an event, as far as that was not handed over at some moment."""

    def __call__(self, event: EventId, /) -> Mapping[MachineId, datetime]:
        """Return when machines were first sent an event."""
        ...


class SentNotices(Protocol):
    """The events that guests are sent: known in memory first, handed over before the rules need them."""

    def sent_so_far(self) -> SentSoFar:
        """Return what tells of events that are not handed over yet. Any thread may ask."""
        ...

    def has_sent(self) -> bool:
        """Return whether there is anything to hand over."""
        ...

    def take_sent(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        ...
