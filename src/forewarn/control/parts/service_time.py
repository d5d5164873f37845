"""How service time is kept: how far it is, whose it is, and when the service was not there."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from forewarn.core.model.clock_slew import Absence, Slew, TimeKind
from forewarn.core.model.constraints import Grace


class TimeQueries(Protocol):
    """Reads what is kept of service time."""

    def reached(self) -> datetime | None:
        """Return the service time reached; None in a new store."""
        ...

    def kind(self) -> TimeKind | None:
        """Return whose time the store lives in; None in a new store, and in one of an older forewarn."""
        ...

    def backup_of(self) -> datetime | None:
        """Return the time that a backup has everything up to; None if this is none, or was served."""
        ...

    def present_at(self) -> datetime | None:
        """Return when the service was last known to run; None in a new store."""
        ...

    def slew(self) -> Slew | None:
        """Return how service time and the system's go on, if it is ahead."""
        ...

    def absences(self) -> Sequence[Absence]:
        """Return the stretches in which guests could not be heard, as far as they matter, in order."""
        ...

    def grace(self) -> Grace | None:
        """Return how unapproved starts are held, if they are."""
        ...


class TimeChanges(TimeQueries, Protocol):
    """Reads and saves what is kept of service time."""

    def set_reached(self, now: datetime) -> None:
        """Keep the service time reached."""
        ...

    def set_kind(self, kind: TimeKind) -> None:
        """Keep whose time the store lives in."""
        ...

    def set_served(self) -> None:
        """Keep that this is no backup any more."""
        ...

    def set_present(self, now: datetime, *, ahead: timedelta = ...) -> None:
        """Keep that the service runs now, so far ahead of the system's time; time reached with it."""
        ...

    def set_absences(self, absences: Sequence[Absence]) -> None:
        """Keep in which stretches guests could not be heard."""
        ...

    def set_grace(self, grace: Grace | None) -> None:
        """Keep or clear the hold on unapproved starts."""
        ...
