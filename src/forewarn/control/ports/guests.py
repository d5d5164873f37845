"""What control is told of guests before it is saved."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.words import (
    GroupName,
    MachineId,
)


class Activity(Protocol):
    """Who has polled: known in memory first, saved now and then."""

    def pending(self) -> bool:
        """Say whether there is anything to hand over."""
        ...

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over what is new since the last call: groups' and machines' newest polls."""
        ...

    def fresh(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when these machines were last seen, as far as that is not handed over yet."""
        ...
