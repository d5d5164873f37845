"""The declaration of a project: maintenance windows, blackout days, rehearsals and visibility."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.project import DAY, Calendar, Project, Window
from forewarn.wire import fields
from forewarn.wire.fields import Field, Fields
from forewarn.wire.texts import shown

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_WINDOW_LENGTH = (timedelta(minutes=1), timedelta(days=7))
# Bounds that catch a typo in a year.
_LONGEST_BLACKOUT = 366
_YEARS = range(2000, 2200)
_MOST_WINDOWS = 50
_START = "a time of day such as 22:00"


def _days(value: object) -> frozenset[int]:
    days = fields.sequence(value)
    if not days or any(day not in DAYS for day in days):
        written = ", ".join(map(shown, days)) or "an empty list"
        raise Invalid(f"expected weekdays of {', '.join(DAYS)}, got {written}")
    return frozenset(map(DAYS.index, days))


def _clock_time(value: object) -> time:
    if not isinstance(value, str) or not _CLOCK_TIME.fullmatch(value):
        raise Invalid(f"expected {_START}, got {shown(value)}")
    return time.fromisoformat(value)


def _zone(value: object) -> tzinfo:
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value if isinstance(value, str) else "")
    except (KeyError, ValueError, OSError):  # an unknown zone, or a path
        expected = "expected an IANA time zone such as Europe/Berlin"
        raise Invalid(f"{expected}, got {shown(value)}") from None


def _blackout(value: object) -> frozenset[date]:
    return frozenset(day for each in fields.sequence(value) for day in _days_of_range(each))


def _days_of_range(value: object) -> list[date]:
    """Read a day, or the first and last day of a range."""
    written = value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value
    try:
        ends = [date.fromisoformat(day) for day in written.split("/")] if isinstance(written, str) else []
    except ValueError:
        ends = []
    count = (ends[-1] - ends[0]).days + 1 if ends else 0
    if len(ends) not in (1, 2) or not 1 <= count <= _LONGEST_BLACKOUT or ends[0].year not in _YEARS:
        expected = (
            "expected a day such as 2026-12-24, or a range of up to a year such as 2026-12-24/2027-01-01"
        )
        raise Invalid(f"{expected}, got {shown(value)}")
    return [ends[0] + place * DAY for place in range(count)]


def _every_day(
    *, start: time, length: timedelta, days: frozenset[int] = frozenset(range(len(DAYS)))
) -> Window:
    return Window(days=days, start=start, length=length)


_WINDOW: Fields = {
    "days": Field(
        read=_days,
        schema={"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(DAYS)}},
        write=lambda days: [DAYS[day] for day in sorted(days)],
    ).about("Weekdays on which the window opens. Default: every day."),
    "start": Field(
        read=_clock_time,
        schema={"type": "string", "pattern": f"^{_CLOCK_TIME.pattern}$"},
        write=lambda start: f"{start:%H:%M}",
    ).about("Time of day when the window opens, in the project's time zone."),
    "length": fields.span(*_WINDOW_LENGTH).about(
        "Length, up to `7d`. It does not change on days when the clocks change."
    ),
}

PROJECT: Fields = {
    "time_zone": Field(read=_zone, schema={"type": "string"}, write=str).about(
        "IANA time zone of the windows and blackout days. Default: `UTC`."
    ),
    "windows": fields.several(
        fields.part(_WINDOW, _every_day, required={"start": _START, "length": "a time such as 4h"}),
        most=_MOST_WINDOWS,
    ).about("Maintenance windows: when maintenance may happen. Default: at any time."),
    "blackout": Field(
        read=_blackout,
        schema={"type": "array", "items": {"type": "string"}},
        write=lambda days: [day.isoformat() for day in sorted(days)],
    ).about("Days without maintenance: days, or ranges such as `2026-12-24/2027-01-01`."),
    "rehearsal": fields.flag.about("Allow rehearsals: scenarios may run on its machines."),
    "sees_hosts": fields.flag.about("Show the names of hosts and operators to its users."),
}


def make_project(
    name: str,
    *,
    time_zone: tzinfo = UTC,
    windows: tuple[Window, ...] = (),
    blackout: frozenset[date] = frozenset(),
    rehearsal: bool = False,
    sees_hosts: bool = False,
) -> Project:
    """Build a project from its declaration."""
    calendar = Calendar(windows=windows, blackout=blackout, zone=time_zone)
    return Project(name=ProjectName(name), calendar=calendar, rehearsal=rehearsal, sees_hosts=sees_hosts)


def read_project(name: str, declared: Mapping[str, object], where: str) -> Project:
    """Read the declaration of a project."""
    return make_project(name, **fields.read(declared, PROJECT, where))


def write_project(project: Project) -> dict[str, object]:
    """Return the declaration of a project. Fields with their default are left out."""
    calendar = project.calendar
    declared = {
        "time_zone": None if calendar.zone == UTC else calendar.zone,
        "windows": calendar.windows,
        "blackout": calendar.blackout,
        "rehearsal": project.rehearsal,
        "sees_hosts": project.sees_hosts,
    }
    return {name: PROJECT[name].write(value) for name, value in declared.items() if value}
