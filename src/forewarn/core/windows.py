"""When a project lets itself be disturbed: weekly windows in its own time zone, and days that are taboo."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)
# How far ahead one looks for a moment that fits, a little at first; what has not come by then never will.
REACHES = (8 * DAY, 60 * DAY, 400 * DAY)
FOR_EVER = datetime.max.replace(tzinfo=UTC)


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
        kept = _common(whole, _joined(self._windows(opens, closes))) if self.windows else whole
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


class Outlook:
    """When all of some calendars are open; what it has found out it keeps, for there are many questions."""

    def __init__(self, calendars: Iterable[Calendar]) -> None:
        self._bound = [calendar for calendar in calendars if not calendar.always]
        self._since = FOR_EVER  # nothing is known yet
        self._reach = -1  # how far of REACHES is known
        self._known: list[Opening] = []

    def fit(self, after: datetime, work: timedelta) -> Opening | None:
        """Find the first stretch from a moment on in which work may start at any time, and be over in time.

        None if there is none in sight.
        """
        if not self._bound:
            return Opening(after, FOR_EVER)
        if after < self._since or after > self._since + REACHES[0]:
            self._since, self._reach = after, -1
        while True:
            found = self._among_known(after, work)
            if found is not None and not self._is_open_end(found):
                return Opening(max(found.opens, after), found.closes - work)
            if self._reach + 1 == len(REACHES):
                return None if found is None else Opening(max(found.opens, after), FOR_EVER)
            self._look_further()

    def _among_known(self, after: datetime, work: timedelta) -> Opening | None:
        if self._reach < 0:
            return None
        place = max(bisect_right(self._known, after, key=_opens) - 1, 0)
        fitting = (each for each in self._known[place:] if each.closes - max(each.opens, after) >= work)
        return next(fitting, None)

    def _look_further(self) -> None:
        self._reach += 1
        until = self._since + REACHES[self._reach]
        self._known = [Opening(self._since, until)]
        for calendar in self._bound:
            self._known = _common(self._known, calendar.openings(self._since, until))

    def _is_open_end(self, opening: Opening) -> bool:
        """Say whether only the end of what is known closes it: further on it may go on."""
        return opening.closes == self._since + REACHES[self._reach]


def _opens(opening: Opening) -> datetime:
    return opening.opens


def _joined(openings: Iterable[Opening]) -> list[Opening]:
    """Put in order, and make one of those that overlap or touch."""
    found: list[Opening] = []
    for opening in sorted(openings):
        if found and opening.opens <= found[-1].closes:
            found[-1] = Opening(found[-1].opens, max(found[-1].closes, opening.closes))
        else:
            found.append(opening)
    return found


def _common(some: list[Opening], others: list[Opening]) -> list[Opening]:
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
    return _common(openings, between)
