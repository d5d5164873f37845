"""What the guest endpoint knows and the store does not yet."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.model.slice import Sent
from forewarn.core.words import (
    GroupName,
    MachineId,
)


class Activity(Protocol):
    """The polls of guests: known in memory first, saved now and then."""

    def pending(self) -> bool:
        """Return whether there is anything to hand over."""
        ...

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over what is new since the last call: groups' and machines' newest polls."""
        ...

    def fresh(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when these machines were last seen, as far as that is not handed over yet."""
        ...


class SentNotices(Protocol):
    """The events that guests are sent: known in memory first, handed over before the rules need them."""

    def has_sent(self) -> bool:
        """Return whether there is anything to hand over."""
        ...

    def take_sent(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        ...
