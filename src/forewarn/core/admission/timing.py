"""When maintenance may be announced and started: its notice, and the windows of the projects."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import Slew
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.project import DAY, Calendar, Opening, Project, overlap
from forewarn.core.redaction import project_name
from forewarn.core.time_formats import format_span, format_time, round_up_to_second

# How far ahead to look for an opening, shortest first. An opening beyond the last one counts as never.
REACHES = (8 * DAY, 60 * DAY, 400 * DAY)
FOR_EVER = datetime.max.replace(tzinfo=UTC)


class JointCalendar:
    """The times at which all of several calendars are open. Openings are cached."""

    def __init__(self, calendars: Iterable[Calendar], *, slew: Slew | None = None) -> None:
        """Use `slew` to convert openings, which are in system time, to service time."""
        self._slew = slew
        self._bound = [calendar for calendar in calendars if not calendar.always]
        self.since = FOR_EVER  # nothing is cached yet
        self._reach = -1  # the index of the last of REACHES that is cached
        self._known: list[Opening] = []

    def fit(self, after: datetime, work: timedelta) -> Opening | None:
        """Return the first period in which work may start and still ends in time; None if there is none."""
        if not self._bound:
            return Opening(after, FOR_EVER)
        if after < self.since or after > self.since + REACHES[0]:
            self.since, self._reach = after, -1
        while True:
            found = self._among_known(after, work)
            # The end of the cached time is not the end of an opening.
            open_end = found is not None and found.closes == self.since + REACHES[self._reach]
            if found is not None and not open_end:
                return Opening(max(found.opens, after), found.closes - work)
            if self._reach + 1 == len(REACHES):
                return None if found is None else Opening(max(found.opens, after), FOR_EVER)
            self._look_further()

    def _among_known(self, after: datetime, work: timedelta) -> Opening | None:
        if self._reach < 0:
            return None
        index = max(bisect_right(self._known, after, key=lambda opening: opening.opens) - 1, 0)
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


# An announcement may be this late, and so may the start. A window needs room for both delays. Otherwise work
# that just fits would miss it every day.
LEEWAY = timedelta(seconds=30)
NOTHING = timedelta()
LONGEST_DEADLINE = timedelta(days=3660)


class Timing:
    """The start times of some work: inside the windows of all projects that it disturbs, until a deadline."""

    def __init__(
        self,
        *,
        notice: timedelta = NOTHING,
        work: timedelta = NOTHING,  # how long it is expected to take
        calendars: Mapping[ProjectName, Calendar] | None = None,
        deadline: datetime | None = None,
        slew: Slew | None = None,  # if service time is ahead: windows are in system time
    ) -> None:
        self._notice = notice
        self._work = work
        self._deadline = deadline
        self._calendars = calendars or {}
        self._slew = slew
        self._of_all = JointCalendar(self._calendars.values(), slew=slew)
        # The last result of `announce_at`, and for which times it is valid.
        self._found: Opening | None = None
        self._asked_at = self._known_until = FOR_EVER
        self._of_project = {
            project: JointCalendar([calendar], slew=slew) for project, calendar in self._calendars.items()
        }

    def not_before(self, now: datetime) -> datetime:
        """Return when work that is announced now may start without approvals."""
        return round_up_to_second(now + self._notice)

    # Announcing

    def why_not_announce(self, what: str, *, now: datetime) -> tuple[Waiting, ...]:
        """Return the windows that are too short for work announced now."""
        if self.announce_at(now) == now:
            return ()
        start = self.not_before(now)
        closed = self._closed(start, self._work + LEEWAY, now=now)
        return self._reasons(what, closed, start, self._work + 2 * LEEWAY)

    def announce_at(self, now: datetime) -> datetime | None:
        """Return the first time from now on at which work may be announced; None if there is none."""
        if not self._asked_at <= now <= self._known_until:
            self._found = self._first_announcement(now)
            self._asked_at = now
            self._known_until = FOR_EVER if self._found is None else self._found.closes
        return None if self._found is None else max(self._found.opens, now)

    def _first_announcement(self, now: datetime) -> Opening | None:
        """Return the first period from now on in which work may be announced; None if there is none."""
        start = self.not_before(now)
        if self._is_overdue(now):
            return Opening(now, FOR_EVER)
        closed = self._closed(start, self._work + LEEWAY, now=now)
        fit = self._of_all.fit(start, self._work + (2 * LEEWAY if closed else LEEWAY))
        first = FOR_EVER if fit is None else now + (fit.opens - start)
        if self._deadline is not None and self._deadline < first:
            return Opening(self._deadline, FOR_EVER)
        if fit is None:
            return None
        return Opening(first, FOR_EVER if fit.closes == FOR_EVER else now + (fit.closes - start))

    # Starting

    def why_not_start(self, what: str, *, now: datetime) -> tuple[Waiting, ...]:
        """Return the windows that are too short for work that starts now."""
        return self._reasons(what, self._closed(now, self._work, now=now), now, self._work)

    def start_at(self, now: datetime) -> datetime | None:
        """Return the first time from now on at which announced work may start."""
        if self._is_overdue(now):
            return now
        fit = self._of_all.fit(now, self._work)
        times = (None if fit is None else fit.opens, self._deadline)
        return min((time for time in times if time is not None), default=None)

    def latest(self, start: datetime, *, now: datetime) -> datetime | None:
        """Return until when a start may be deferred: the deadline or the window's end; None: no limit."""
        if self._is_overdue(now):
            return self._deadline
        fit = self._of_all.fit(start, self._work + LEEWAY)
        closes = start if fit is None or fit.opens > start else fit.closes
        latest = min(closes, self._deadline or FOR_EVER)
        return None if latest == FOR_EVER else latest

    def check(self, what: str, *, now: datetime) -> None:
        """Refuse work that no window will ever have room for."""
        if self.announce_at(now) is None:
            remedy = "set a deadline, shorten the expected work, or change the windows"
            raise Invalid(f"{what}: {self._no_room()}: {remedy}")

    def _no_room(self) -> str:
        *most, last = map(project_name, sorted(self._calendars))
        lack = f"projects {', '.join(most)} and {last} have no window in common" if most else ""
        lack = lack or f"project {last} has no window"
        return f"{lack} with room for {format_span(self._work)} of work and a minute to spare"

    def _closed(self, start: datetime, room: timedelta, *, now: datetime) -> list[ProjectName]:
        """Return the projects whose windows have no room at a time."""
        if self._is_overdue(now):
            return []
        fits = ((project, calendar.fit(start, room)) for project, calendar in self._of_project.items())
        return [project for project, fit in fits if fit is None or fit.opens != start]

    def _reasons(
        self, what: str, closed: list[ProjectName], start: datetime, room: timedelta
    ) -> tuple[Waiting, ...]:
        """Return the closed windows, with the time at which all windows are open."""
        if not closed:
            return ()
        fit = self._of_all.fit(start, room)
        if fit is None:
            return (self._never(what),)
        own = ((project, self._of_project[project].fit(start, room)) for project in closed)
        outside = [
            f"the window of project {project_name(project)}, which opens {self._local_time(project, fit)}"
            for project, mine in own
            if mine is not None and mine.opens == fit.opens
        ]
        if not outside:
            *most, end = map(project_name, sorted(self._calendars))
            shared = f"projects {', '.join(most)} and {end} have in common"
            outside = [f"the windows that {shared}, which open {self._local_time(closed[0], fit)}"]
        return tuple(Waiting(what=what, reason=f"outside {each}", until=fit.opens) for each in outside)

    def _never(self, what: str) -> Waiting:
        """Return that no window has room: the work waits for its deadline, or for a person."""
        if self._deadline is not None:
            until = f"it waits for the deadline, {format_time(self._deadline)}"
            return Waiting(what=what, reason=f"{self._no_room()}: {until}")
        remedy = "change the windows, or abandon it and order it again with a deadline"
        return Waiting(what=what, reason=f"{self._no_room()}: {remedy}", stuck=True)

    def _local_time(self, project: ProjectName, fit: Opening) -> str:
        """Write when windows open, in the time zone of a project."""
        zone = self._calendars[project].zone
        opens = fit.opens if self._slew is None else self._slew.to_system(fit.opens)
        return f"{opens.astimezone(zone):%Y-%m-%d %H:%M} ({zone})"

    def _is_overdue(self, now: datetime) -> bool:
        """Return whether the deadline has passed, so that windows no longer apply."""
        return self._deadline is not None and self._deadline <= now


def check_deadline(deadline: datetime | None, *, now: datetime) -> None:
    """Refuse a deadline in the past, or more than ten years ahead."""
    if deadline is not None and not now < deadline < now + LONGEST_DEADLINE:
        raise Invalid(f"deadline: expected a time in the next ten years, got {format_time(deadline)}")


def calendars(projects: Iterable[Project]) -> dict[ProjectName, Calendar]:
    """Return the calendars of the projects that have windows."""
    return {project.name: project.calendar for project in projects if not project.calendar.always}
