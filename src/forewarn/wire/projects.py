"""What a project declares beside its name: windows, blackout days, what it is for, what its people see."""

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
# A slip of the finger in the year of a stretch should be caught.
_LONGEST_BLACKOUT = 366
_YEARS = range(2000, 2200)
_MOST_WINDOWS = 50
_START = "a time of day as 22:00"


def _days(value: object) -> frozenset[int]:
    found = [DAYS.index(day) for day in fields.sequence(value) if isinstance(day, str) and day in DAYS]
    if not found or len(found) != len(fields.sequence(value)):
        raise Invalid(f"expected some of {', '.join(DAYS)}, got {_written(value)}")
    return frozenset(found)


def _clock_time(value: object) -> time:
    if not isinstance(value, str) or not _CLOCK_TIME.fullmatch(value):
        raise Invalid(f"expected {_START}, got {shown(value)}")
    return time.fromisoformat(value)


def _zone(value: object) -> tzinfo:
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value if isinstance(value, str) else "")
    except (KeyError, ValueError, OSError):  # unknown, or no name at all: a path, a folder
        expected = "expected a name of the IANA time zone database, as Europe/Berlin"
        raise Invalid(f"{expected}, got {shown(value)}") from None


def _blackout(value: object) -> frozenset[date]:
    return frozenset(day for each in fields.sequence(value) for day in _stretch(each))


def _stretch(value: object) -> list[date]:
    """Read a day, or the first and the last of several."""
    written = value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value
    try:
        ends = [date.fromisoformat(day) for day in written.split("/")] if isinstance(written, str) else []
    except ValueError:
        ends = []
    count = (ends[-1] - ends[0]).days + 1 if ends else 0
    if len(ends) not in (1, 2) or not 1 <= count <= _LONGEST_BLACKOUT or ends[0].year not in _YEARS:
        expected = (
            "expected a day as 2026-12-24, or the first and last of up to a year as 2026-12-24/2027-01-01"
        )
        raise Invalid(f"{expected}, got {shown(value)}")
    return [ends[0] + place * DAY for place in range(count)]


def _written(value: object) -> str:
    return ", ".join(shown(each) for each in fields.sequence(value)) or "an empty list"


def _every_day(
    *, start: time, length: timedelta, days: frozenset[int] = frozenset(range(len(DAYS)))
) -> Window:
    return Window(days=days, start=start, length=length)


_WINDOW: Fields = {
    "days": Field(
        read=_days,
        schema={"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(DAYS)}},
        write=lambda days: [DAYS[day] for day in sorted(days)],
    ).about("Left out: every day."),
    "start": Field(
        read=_clock_time,
        schema={"type": "string", "pattern": f"^{_CLOCK_TIME.pattern}$"},
        write=lambda start: f"{start:%H:%M}",
    ).about("On the wall, in the project's time zone."),
    "length": fields.span(*_WINDOW_LENGTH).about("Real time, also when the clocks are changed; up to 7d."),
}

PROJECT: Fields = {
    "time_zone": Field(read=_zone, schema={"type": "string"}, write=str).about(
        "Of the IANA database; left out: UTC."
    ),
    "windows": fields.several(
        fields.part(_WINDOW, _every_day, required={"start": _START, "length": "a time as 4h"}),
        most=_MOST_WINDOWS,
    ).about("When maintenance may happen; none: at any time."),
    "blackout": Field(
        read=_blackout,
        schema={"type": "array", "items": {"type": "string"}},
        write=lambda days: [day.isoformat() for day in sorted(days)],
    ).about("Days without maintenance: a day, or the first and last as 2026-12-24/2027-01-01."),
    "rehearsal": fields.flag.about("Whether scenarios may be played on its machines."),
    "sees_hosts": fields.flag.about("Whether its people see the names of hosts and operators."),
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
    """Make a project of what it declares."""
    calendar = Calendar(windows=windows, blackout=blackout, zone=time_zone)
    return Project(name=ProjectName(name), calendar=calendar, rehearsal=rehearsal, sees_hosts=sees_hosts)


def read_project(name: str, declared: Mapping[str, object], where: str) -> Project:
    """Read what a project declares."""
    return make_project(name, **fields.read(declared, PROJECT, where))


def write_project(project: Project) -> dict[str, object]:
    """Write what a project declares the way it is read; what has its default is left out."""
    calendar = project.calendar
    declared = {
        "time_zone": None if calendar.zone == UTC else calendar.zone,
        "windows": calendar.windows,
        "blackout": calendar.blackout,
        "rehearsal": project.rehearsal,
        "sees_hosts": project.sees_hosts,
    }
    return {name: PROJECT[name].write(value) for name, value in declared.items() if value}
