"""When a project lets itself be disturbed: weekly windows in its own time zone, and days that are taboo."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)

# Past this nobody plans; windows that have not met by then never will.
HORIZON = timedelta(days=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """On these days, from this time of the clock on the wall, for so long."""

    days: frozenset[int]  # 0 is Monday
    start: time
    length: timedelta
    zone: tzinfo

    def opening(self, day: date) -> "Opening":
        """Say when it opens and closes if it opens on a day.

        A time that the change to summer time leaves out counts as the same moment an hour later on the
        wall; of one that comes twice, the first counts. The length is real time on every day.
        """
        opens = datetime.combine(day, self.start, tzinfo=self.zone).astimezone(UTC)
        return Opening(opens=opens, closes=opens + self.length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """All windows of a project; without any it may be disturbed at all times."""

    windows: tuple[Window, ...] = ()
    blackout: frozenset[date] = frozenset()  # no window opens on these days, in its own zone

    def openings(self, after: datetime) -> Iterator["Opening"]:
        """List what is open at a moment or opens later, in order, up to the horizon."""
        today = after.astimezone(UTC).date()
        last = (after + HORIZON).date()
        found: list[Opening] = []
        # A window may have opened days ago and still be open; a zone may be a day off from UTC.
        day = today - max((window.length for window in self.windows), default=DAY) - DAY
        while day <= last:
            found.extend(
                window.opening(day)
                for window in self.windows
                if day.weekday() in window.days and day not in self.blackout
            )
            # What opens on a later day in any zone opens more than a day after this one's midnight.
            settled = datetime.combine(day, time(), tzinfo=UTC) - DAY
            ready = sorted((each for each in found if each.opens < settled), key=_opens)
            found = [each for each in found if each.opens >= settled]
            yield from (each for each in ready if each.closes > after)
            day += DAY
        yield from sorted((each for each in found if each.closes > after), key=_opens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A stretch of time in which a project may be disturbed."""

    opens: datetime
    closes: datetime


def _opens(opening: Opening) -> datetime:
    return opening.opens


def first_fit(calendars: Iterable[Calendar], *, after: datetime, work: timedelta) -> datetime | None:
    """Find the first moment from which work fits into the windows of all; None if there is none in sight."""
    bound = [calendar for calendar in calendars if calendar.windows]
    moment, settled = after, False
    while not settled:
        settled = True
        for calendar in bound:
            fitting = _fit(calendar, moment, work)
            if fitting is None or fitting > after + HORIZON:
                return None
            if fitting != moment:
                moment, settled = fitting, False
    return moment


def is_open(calendars: Iterable[Calendar], *, at: datetime, work: timedelta) -> bool:
    """Say whether work that starts at a moment fits into the windows of all."""
    return first_fit(calendars, after=at, work=work) == at


def _fit(calendar: Calendar, after: datetime, work: timedelta) -> datetime | None:
    for opening in calendar.openings(after):
        start = max(opening.opens, after)
        if start + work <= opening.closes:
            return start
    return None
