"""Projects and their calendars: weekly maintenance windows and blackout days in the project's time zone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from forewarn.core.basic_types import DECLARED, ProjectName

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A weekly window: days, a local start time, and a length."""

    days: frozenset[int]  # 0 is Monday
    start: time
    length: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """When a project may be disturbed: in its windows (if none: always), never on a blackout day."""

    windows: tuple[Window, ...] = ()
    blackout: frozenset[date] = frozenset()
    zone: tzinfo = UTC

    @property
    def always(self) -> bool:
        """Whether the project may be disturbed at any time."""
        return not self.windows and not self.blackout

    def openings(self, opens: datetime, closes: datetime) -> list["Opening"]:
        """List the openings in a stretch of time, in order; openings that touch are merged."""
        whole = [Opening(opens, closes)]
        kept = overlap(whole, _joined(self._windows(opens, closes))) if self.windows else whole
        return _without(kept, _joined(self._blackouts(opens, closes)))

    def _windows(self, opens: datetime, closes: datetime) -> Iterator["Opening"]:
        """Yield each window on each of its days.

        A local time that the change to summer time skips counts as one hour later. If a local time occurs
        twice, the first counts. The length is real time on every day.
        """
        # A window may have opened days ago and still be open.
        longest = max(window.length for window in self.windows)
        day, last = (opens - longest).astimezone(self.zone).date(), closes.astimezone(self.zone).date()
        while day <= last:
            for window in self.windows:
                if day.weekday() in window.days:
                    start = self._moment(day, window.start)
                    yield Opening(start, start + window.length)
            day += DAY

    def _blackouts(self, opens: datetime, closes: datetime) -> Iterator["Opening"]:
        first, last = (moment.astimezone(self.zone).date() for moment in (opens, closes))
        for day in self.blackout:
            if first <= day <= last:
                yield Opening(self._moment(day, time()), self._moment(day + DAY, time()))

    def _moment(self, day: date, at: time) -> datetime:
        return datetime.combine(day, at, tzinfo=self.zone).astimezone(UTC)


ALWAYS = Calendar()


@dataclass(frozen=True, slots=True, order=True)
class Opening:
    """A stretch of time in which a project may be disturbed."""

    opens: datetime
    closes: datetime


def _joined(openings: Iterable[Opening]) -> list[Opening]:
    """Sort openings, and merge those that overlap or touch."""
    found: list[Opening] = []
    for opening in sorted(openings):
        if found and opening.opens <= found[-1].closes:
            found[-1] = Opening(found[-1].opens, max(found[-1].closes, opening.closes))
        else:
            found.append(opening)
    return found


def overlap(some: list[Opening], others: list[Opening]) -> list[Opening]:
    """Return the intersection of two sorted lists of openings, sorted."""
    found, mine, theirs = [], 0, 0
    while mine < len(some) and theirs < len(others):
        one, other = some[mine], others[theirs]
        opens, closes = max(one.opens, other.opens), min(one.closes, other.closes)
        if opens < closes:
            found.append(Opening(opens, closes))
        if one.closes <= other.closes:
            mine += 1
        else:
            theirs += 1
    return found


def _without(openings: list[Opening], taboo: list[Opening]) -> list[Opening]:
    """Subtract sorted openings."""
    if not openings or not taboo:
        return openings
    ends = [openings[0].opens, *(away.closes for away in taboo)]
    begins = [*(away.opens for away in taboo), max(openings[-1].closes, taboo[-1].closes)]
    between = [Opening(opens, closes) for opens, closes in zip(ends, begins, strict=True) if opens < closes]
    return overlap(openings, between)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant: groups, machines and people."""

    name: ProjectName
    calendar: Calendar = ALWAYS  # when maintenance may disturb it
    rehearsal: bool = False  # whether rehearsals may use its machines
    sees_hosts: bool = False  # whether its people see the names of hosts and operators
    source: str = DECLARED  # a person, a fleet file, or the driver that imported it
