"""Projects, and when each lets itself be disturbed: weekly windows and days without work in its time zone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from forewarn.core.basic_types import DECLARED, ProjectName

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """On these days of the week, from this time of the clock on the wall, for so long."""

    days: frozenset[int]  # 0 is Monday
    start: time
    length: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """When a project may be disturbed; without windows at all times, but never on a blackout day."""

    windows: tuple[Window, ...] = ()
    blackout: frozenset[date] = frozenset()
    zone: tzinfo = UTC

    @property
    def always(self) -> bool:
        """Whether there is no time at which it may not be disturbed."""
        return not self.windows and not self.blackout

    def openings(self, opens: datetime, closes: datetime) -> list["Opening"]:
        """List when it is open in a stretch of time, in order; openings that touch are one."""
        whole = [Opening(opens, closes)]
        kept = overlap(whole, _joined(self._windows(opens, closes))) if self.windows else whole
        return _without(kept, _joined(self._blackouts(opens, closes)))

    def _windows(self, opens: datetime, closes: datetime) -> Iterator["Opening"]:
        """List each window on each of its days.

        A time that the change to summer time leaves out counts as the same moment an hour later on the
        wall; of one that comes twice, the first counts. The length is real time on every day.
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
    """Put in order, and make one of those that overlap or touch."""
    found: list[Opening] = []
    for opening in sorted(openings):
        if found and opening.opens <= found[-1].closes:
            found[-1] = Opening(found[-1].opens, max(found[-1].closes, opening.closes))
        else:
            found.append(opening)
    return found


def overlap(some: list[Opening], others: list[Opening]) -> list[Opening]:
    """Keep what lies in both; both are in order, and what is found is too."""
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
    """Cut the taboo stretches out: keep what lies between them."""
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
    rehearsal: bool = False  # whether scenarios may be played on its machines
    sees_hosts: bool = False  # whether its people see the names of hosts and operators
    source: str = DECLARED  # who speaks for it: people, or the driver that it was imported by
