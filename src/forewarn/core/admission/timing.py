"""When maintenance may be announced and started: the notice before it, and the windows of its projects."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import Slew
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.project import DAY, Calendar, Opening, Project, overlap
from forewarn.core.time_formats import format_span, format_time, round_up_to_second
from forewarn.core.redaction import project_name

# How far ahead a moment that fits is looked for, near first; what has not come by then never will.
REACHES = (8 * DAY, 60 * DAY, 400 * DAY)
FOR_EVER = datetime.max.replace(tzinfo=UTC)


class JointCalendar:
    """When all of some calendars are open; what was found is kept, for it is asked often."""

    def __init__(self, calendars: Iterable[Calendar], *, slew: Slew | None = None) -> None:
        """Take how service time goes on if it is ahead: calendars are read by the system's."""
        self._slew = slew
        self._bound = [calendar for calendar in calendars if not calendar.always]
        self.since = FOR_EVER  # nothing is known yet
        self._reach = -1  # how far of REACHES is known
        self._known: list[Opening] = []

    def fit(self, after: datetime, work: timedelta) -> Opening | None:
        """Find the first stretch from a moment on in which work may start at any time, and be over in time.

        None if there is none in sight.
        """
        if not self._bound:
            return Opening(after, FOR_EVER)
        if after < self.since or after > self.since + REACHES[0]:
            self.since, self._reach = after, -1
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
        until = self.since + REACHES[self._reach]
        self._known = [Opening(self.since, until)]
        for calendar in self._bound:
            self._known = overlap(self._known, self._openings(calendar, until))

    def _openings(self, calendar: Calendar, until: datetime) -> list[Opening]:
        slew = self._slew
        if slew is None:
            return calendar.openings(self.since, until)
        return [
            Opening(slew.to_service(each.opens), slew.to_service(each.closes))
            for each in calendar.openings(slew.to_system(self.since), slew.to_system(until))
        ]

    def _is_open_end(self, opening: Opening) -> bool:
        """Return whether only the end of what is known closes it: it may go on further."""
        return opening.closes == self.since + REACHES[self._reach]


def _opens(opening: Opening) -> datetime:
    return opening.opens


# Nothing happens at the very moment it is due. An announcement may be late by so much, and the start again:
# a window must have room for both, or work that just fits would miss it every day.
LEEWAY = timedelta(seconds=30)
NOTHING = timedelta()
LONGEST_DEADLINE = timedelta(days=3660)


class Timing:
    """What binds the start of some work: the windows of all it disturbs, up to a deadline."""

    def __init__(
        self,
        *,
        notice: timedelta = NOTHING,
        work: timedelta = NOTHING,  # how long it is expected to take
        calendars: Mapping[ProjectName, Calendar] | None = None,
        deadline: datetime | None = None,
        slew: Slew | None = None,  # of service time that is ahead: windows go by the system's
    ) -> None:
        self._notice = notice
        self._work = work
        self._deadline = deadline
        self._calendars = calendars or {}
        self._slew = slew
        self._of_all = JointCalendar(self._calendars.values(), slew=slew)
        # What was found the last time, and the moments that it holds of.
        self._found: Opening | None = None
        self._asked_at = self._known_until = FOR_EVER
        self._of_project = {
            project: JointCalendar([calendar], slew=slew) for project, calendar in self._calendars.items()
        }

    def not_before(self, now: datetime) -> datetime:
        """Return when work that is announced now may start, approvals aside."""
        return round_up_to_second(now + self._notice)

    # Announcing

    def why_not_announce(self, what: str, *, now: datetime) -> tuple[Waiting, ...]:
        """Return the windows in which work announced now would not be over, or that none has room for it."""
        if self.announce_at(now) == now:
            return ()
        start = self.not_before(now)
        closed = self._closed(start, self._work + LEEWAY, now=now)
        return self._reasons(what, closed, start, self._work + 2 * LEEWAY)

    def announce_at(self, now: datetime) -> datetime | None:
        """Find the first moment from now on at which work may be announced; None if there is none."""
        if not self._asked_at <= now <= self._known_until:
            self._found = self._announcing(now)
            self._asked_at = now
            self._known_until = FOR_EVER if self._found is None else self._found.closes
        return None if self._found is None else max(self._found.opens, now)

    def _announcing(self, now: datetime) -> Opening | None:
        """Find the first stretch from now on in which work may be announced; None if there is none."""
        start = self.not_before(now)
        if self._gives_way(now):
            return Opening(now, FOR_EVER)
        closed = self._closed(start, self._work + LEEWAY, now=now)
        fit = self._of_all.fit(start, self._work + (2 * LEEWAY if closed else LEEWAY))
        if fit is None:
            return None if self._deadline is None else Opening(self._deadline, FOR_EVER)
        first = now + (fit.opens - start)
        if self._deadline is not None and self._deadline < first:
            return Opening(self._deadline, FOR_EVER)
        return Opening(first, FOR_EVER if fit.closes == FOR_EVER else now + (fit.closes - start))

    # Starting

    def why_not_start(self, what: str, *, now: datetime) -> tuple[Waiting, ...]:
        """Return the windows in which work that starts now would not be over."""
        return self._reasons(what, self._closed(now, self._work, now=now), now, self._work)

    def start_at(self, now: datetime) -> datetime | None:
        """Find the first moment from now on at which work that was announced may start."""
        if self._gives_way(now):
            return now
        fit = self._of_all.fit(now, self._work)
        moments = (None if fit is None else fit.opens, self._deadline)
        return min((moment for moment in moments if moment is not None), default=None)

    def latest(self, start: datetime, *, now: datetime) -> datetime | None:
        """Return up to when a start may be deferred: the deadline, or the window's end; None: for ever."""
        if self._gives_way(now):
            return self._deadline
        fit = self._of_all.fit(start, self._work + LEEWAY)
        closes = start if fit is None or fit.opens > start else fit.closes
        latest = min(closes, self._deadline or FOR_EVER)
        return None if latest == FOR_EVER else latest

    def check(self, what: str, *, now: datetime) -> None:
        """Refuse work that no window will ever have room for."""
        if self.announce_at(now) is None:
            remedy = "give a deadline, say that it takes less, or change the windows"
            raise Invalid(f"{what}: {self._no_room()}: {remedy}")

    def _no_room(self) -> str:
        *most, last = map(project_name, sorted(self._calendars))
        lack = f"projects {', '.join(most)} and {last} have no window in common" if most else ""
        lack = lack or f"project {last} has no window"
        return f"{lack} with room for {format_span(self._work)} of work and a minute to spare"

    def _closed(self, start: datetime, room: timedelta, *, now: datetime) -> list[ProjectName]:
        """List the projects whose windows have no room at a moment."""
        if self._gives_way(now):
            return []
        fits = ((project, calendar.fit(start, room)) for project, calendar in self._of_project.items())
        return [project for project, fit in fits if fit is None or fit.opens != start]

    def _reasons(
        self, what: str, closed: list[ProjectName], start: datetime, room: timedelta
    ) -> tuple[Waiting, ...]:
        """Return until when closed windows keep it: until all are open, however often one is before."""
        if not closed:
            return ()
        fit = self._of_all.fit(start, room)
        if fit is None:
            return (self._never(what),)
        last = [project for project in closed if self._opens_with(project, fit, start, room)]
        outside = [
            f"the window of project {project_name(project)}, which opens {self._at(project, fit)}"
            for project in last
        ]
        if not last:
            *most, end = map(project_name, sorted(self._calendars))
            shared = f"projects {', '.join(most)} and {end} have in common"
            outside = [f"the windows that {shared}, which open {self._at(closed[0], fit)}"]
        return tuple(Waiting(what=what, reason=f"outside {each}", until=fit.opens) for each in outside)

    def _opens_with(self, project: ProjectName, fit: Opening, start: datetime, room: timedelta) -> bool:
        own = self._of_project[project].fit(start, room)
        return own is not None and own.opens == fit.opens

    def _never(self, what: str) -> Waiting:
        """Return that no window ever has room: a deadline comes, or else only a person can help."""
        if self._deadline is not None:
            return Waiting(
                what=what,
                reason=f"{self._no_room()}: it waits for the deadline, {format_time(self._deadline)}",
            )
        remedy = "change the windows, or give it up and begin anew with a deadline"
        return Waiting(what=what, reason=f"{self._no_room()}: {remedy}", stuck=True)

    def _at(self, project: ProjectName, fit: Opening) -> str:
        """Write when there is room, by a project's own clock."""
        zone = self._calendars[project].zone
        opens = fit.opens if self._slew is None else self._slew.to_system(fit.opens)
        return f"{opens.astimezone(zone):%Y-%m-%d %H:%M} ({zone})"

    def _gives_way(self, now: datetime) -> bool:
        return self._deadline is not None and self._deadline <= now


def check_deadline(deadline: datetime | None, *, now: datetime) -> None:
    """Refuse a deadline that has passed, or is further away than ten years."""
    if deadline is not None and not now < deadline < now + LONGEST_DEADLINE:
        raise Invalid(f"deadline: expected a time in the next ten years, got {format_time(deadline)}")


def calendars(projects: Iterable[Project]) -> dict[ProjectName, Calendar]:
    """Return the calendars of projects that may not be disturbed at all times."""
    return {project.name: project.calendar for project in projects if not project.calendar.always}
