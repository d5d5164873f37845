"""When the calendars of several projects are open together."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from forewarn.core.model.clock_slew import Slew
from forewarn.core.model.project import DAY, Calendar, Opening, overlap

# How far ahead a moment that fits is looked for, near first; what has not come by then never will.
REACHES = (8 * DAY, 60 * DAY, 400 * DAY)
FOR_EVER = datetime.max.replace(tzinfo=UTC)


class JointCalendar:
    """When all of some calendars are open; what was found is kept, for it is asked often."""

    def __init__(self, calendars: Iterable[Calendar], *, slew: Slew | None = None) -> None:
        """Take how service time goes on if it is ahead: calendars are read by the system's."""
        self._slew = slew
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
        index = max(bisect_right(self._known, after, key=_opens) - 1, 0)
        fitting = (each for each in self._known[index:] if each.closes - max(each.opens, after) >= work)
        return next(fitting, None)

    def _look_further(self) -> None:
        self._reach += 1
        until = self._since + REACHES[self._reach]
        self._known = [Opening(self._since, until)]
        for calendar in self._bound:
            self._known = overlap(self._known, self._openings(calendar, until))

    def _openings(self, calendar: Calendar, until: datetime) -> list[Opening]:
        slew = self._slew
        if slew is None:
            return calendar.openings(self._since, until)
        return [
            Opening(slew.to_service(each.opens), slew.to_service(each.closes))
            for each in calendar.openings(slew.to_system(self._since), slew.to_system(until))
        ]

    def _is_open_end(self, opening: Opening) -> bool:
        """Return whether only the end of what is known closes it: it may go on further."""
        return opening.closes == self._since + REACHES[self._reach]


def _opens(opening: Opening) -> datetime:
    return opening.opens
