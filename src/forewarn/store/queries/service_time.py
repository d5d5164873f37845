"""Service time: how far it has come, which clock it follows, and when the service did not run."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from forewarn.core.model.clock_slew import Absence, Slew, TimeKind
from forewarn.core.model.constraints import Grace
from forewarn.store.reads.open_transaction import Queries

NOTHING = timedelta()


class TimeQueries(Queries):
    """Queries for service time."""

    def reached(self) -> datetime | None:
        """Return the service time that has been reached; None in a new store."""
        return self._tx.meta.reached

    def kind(self) -> TimeKind | None:
        """Return the kind of clock that the store follows; None before the first server."""
        return self._tx.meta.time_kind

    def backup_of(self) -> datetime | None:
        """Return the time of the backup that this store is; None if it is none, or was served since."""
        return self._tx.meta.backup_of

    def present_at(self) -> datetime | None:
        """Return when the service was last known to run."""
        return self._tx.meta.present_at

    def slew(self) -> Slew | None:
        """Return how far service time is ahead of the system clock, if it is."""
        return self._tx.meta.slew

    def absences(self) -> Sequence[Absence]:
        """Return the recent periods in which guests could not reach the service."""
        return self._tx.meta.absences

    def grace(self) -> Grace | None:
        """Return until when unapproved starts are deferred, if they are."""
        return self._tx.meta.grace


class TimeChanges(TimeQueries):
    """Queries and changes of service time."""

    def set_reached(self, now: datetime) -> None:
        """Save the service time reached; it never goes back."""
        self._tx.update_meta(reached=self._tx.reached_by(now))

    def set_kind(self, kind: TimeKind) -> None:
        """Save the kind of clock that the store follows."""
        self._tx.update_meta(time_kind=kind)

    def set_served(self) -> None:
        """Save that this store is no longer just a backup."""
        self._tx.update_meta(backup_of=None)

    def set_present(self, now: datetime, *, ahead: timedelta = NOTHING) -> None:
        """Save that the service runs now, and how far service time is ahead of the system clock."""
        reached = self._tx.reached_by(now)
        system = reached - ahead if ahead > NOTHING else None
        beats = self._tx.meta.beats + 1
        self._tx.update_meta(reached=reached, present_at=reached, system_at=system, beats=beats)

    def set_absences(self, absences: Sequence[Absence]) -> None:
        """Save the periods in which guests could not reach the service."""
        self._tx.update_meta(absences=tuple(absences))

    def set_grace(self, grace: Grace | None) -> None:
        """Save until when unapproved starts are deferred, or None."""
        self._tx.update_meta(
            grace_until=grace and grace.until, grace_announced_before=grace and grace.announced_before
        )
