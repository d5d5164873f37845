"""When a project lets itself be disturbed: weekly windows in its own time zone, and days that are taboo."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)
# How far ahead one looks for a moment that fits, a little at first; what has not come by then never will.
REACHES = (8 * DAY, 60 * DAY, 400 * DAY)


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
        return _without(kept, _joined(self._blackouts()))

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

    def _blackouts(self) -> Iterator["Opening"]:
        for day in self.blackout:
            yield Opening(self._moment(day, time()), self._moment(day + DAY, time()))

    def _moment(self, day: date, at: time) -> datetime:
        return datetime.combine(day, at, tzinfo=self.zone).astimezone(UTC)


ALWAYS = Calendar()


@dataclass(frozen=True, slots=True, order=True)
class Opening:
    """A stretch of time in which a project may be disturbed."""

    opens: datetime
    closes: datetime


def first_fit(calendars: Iterable[Calendar], *, after: datetime, work: timedelta) -> datetime | None:
    """Find the first moment from which work fits into the windows of all; None if there is none in sight."""
    bound = [calendar for calendar in calendars if not calendar.always]
    if not bound:
        return after
    for reach in REACHES:
        for opening in _open_to_all(bound, after, after + reach):
            if opening.closes - opening.opens >= work:
                return opening.opens
    return None


def last_fit(calendars: Iterable[Calendar], *, at: datetime, work: timedelta) -> datetime | None:
    """Say up to when work that fits at a moment could be put off and still fit; None if there is no end."""
    bound = [calendar for calendar in calendars if not calendar.always]
    if not bound:
        return None
    reach = at + REACHES[0]
    closes = next((opening.closes for opening in _open_to_all(bound, at, reach)), at + work)
    return None if closes == reach else closes - work


def _open_to_all(calendars: Iterable[Calendar], opens: datetime, closes: datetime) -> list[Opening]:
    common = [Opening(opens, closes)]
    for calendar in calendars:
        common = _common(common, calendar.openings(opens, closes))
    return common


def _joined(openings: Iterable[Opening]) -> list[Opening]:
    """Put in order, and make one of those that overlap or touch."""
    found: list[Opening] = []
    for opening in sorted(openings):
        if found and opening.opens <= found[-1].closes:
            found[-1] = Opening(found[-1].opens, max(found[-1].closes, opening.closes))
        else:
            found.append(opening)
    return found


def _common(some: Iterable[Opening], others: list[Opening]) -> list[Opening]:
    """Keep what lies in both; both are in order."""
    return [
        Opening(max(one.opens, other.opens), min(one.closes, other.closes))
        for one in some
        for other in others
        if one.opens < other.closes and other.opens < one.closes
    ]


def _without(openings: Iterable[Opening], taboo: list[Opening]) -> list[Opening]:
    """Cut the taboo stretches out."""
    found: list[Opening] = []
    for opening in openings:
        opens = opening.opens
        for away in taboo:
            if away.closes <= opens or opening.closes <= away.opens:
                continue
            if opens < away.opens:
                found.append(Opening(opens, away.opens))
            opens = away.closes
        if opens < opening.closes:
            found.append(Opening(opens, opening.closes))
    return found
