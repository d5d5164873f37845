"""Service time: how far it is, whose it is, and when the service was not there."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.model.clock_slew import Absence, Slew, TimeKind
from forewarn.core.model.constraints import Grace
from forewarn.store.reads.reader import Reader

NOTHING = timedelta()


class TimeQueries(Reader):
    """What can be asked about service time."""

    def reached(self) -> datetime | None:
        """Return the service time that has been reached; None in a new store."""
        return self._meta.reached

    def kind(self) -> TimeKind | None:
        """Return whose time the store lives in; None if that was not kept yet."""
        return self._meta.time_kind

    def backup_of(self) -> datetime | None:
        """Return the time that a backup has everything up to; None if this is none, or was served."""
        return self._meta.backup_of

    def present_at(self) -> datetime | None:
        """Return when the service was last known to run."""
        return self._meta.present_at

    def slew(self) -> Slew | None:
        """Return how service time and the system's go on, if it is ahead."""
        return self._meta.slew

    def absences(self) -> Sequence[Absence]:
        """Return the stretches in which guests could not be heard, as far as they matter."""
        return self._meta.absences

    def grace(self) -> Grace | None:
        """Return until when unapproved starts are deferred, if they are."""
        return self._meta.grace


class TimeChanges(TimeQueries):
    """The same, and what can be changed."""

    def set_reached(self, now: datetime) -> None:
        """Save the service time reached; it never goes back."""
        self._transaction.keep(replace(self._meta, reached=self._transaction.reached_by(now)))

    def set_kind(self, kind: TimeKind) -> None:
        """Save whose time the store lives in."""
        self._transaction.keep(replace(self._meta, time_kind=kind))

    def set_served(self) -> None:
        """Save that this is no backup any more."""
        self._transaction.keep(replace(self._meta, backup_of=None))

    def set_present(self, now: datetime, *, ahead: timedelta = NOTHING) -> None:
        """Save that the service runs now, so far ahead of the system's time."""
        reached = self._transaction.reached_by(now)
        system = reached - ahead if ahead > NOTHING else None
        self._transaction.keep(
            replace(
                self._meta, reached=reached, present_at=reached, system_at=system, beats=self._meta.beats + 1
            )
        )

    def set_absences(self, absences: Sequence[Absence]) -> None:
        """Save in which stretches guests could not be heard."""
        self._transaction.keep(replace(self._meta, absences=tuple(absences)))

    def set_grace(self, grace: Grace | None) -> None:
        """Save until when unapproved starts are deferred, or None."""
        self._transaction.keep(
            replace(
                self._meta,
                grace_until=None if grace is None else grace.until,
                grace_announced_before=None if grace is None else grace.announced_before,
            )
        )
