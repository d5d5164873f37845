"""What a project declares beside its name: windows, blackout days, whether it is for rehearsals."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from forewarn.core.errors import Invalid
from forewarn.core.model.calendar import DAY, Calendar, Window
from forewarn.core.model.project import Project
from forewarn.core.words import ProjectName
from forewarn.wire import fields
from forewarn.wire.fields import Readers, shown

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_WINDOW_LENGTH = (timedelta(minutes=1), timedelta(days=7))
# A slip of the finger in the year of a stretch should be caught.
_LONGEST_BLACKOUT = 366
_YEARS = range(2000, 2200)
_MOST_WINDOWS = 50


def read_project(name: str, declared: Mapping[str, object], where: str) -> Project:
    """Read what a project declares."""
    given = fields.read(declared, _PROJECT, where)
    if len(given.get("windows", ())) > _MOST_WINDOWS:
        raise Invalid(f"{where}windows: expected at most {_MOST_WINDOWS}")
    windows = tuple(
        _window(window, f"{where}windows[{place}]") for place, window in enumerate(given.get("windows", ()))
    )
    calendar = Calendar(
        windows=windows,
        blackout=given.get("blackout", frozenset()),
        zone=given.get("time_zone", UTC),
    )
    return Project(name=ProjectName(name), calendar=calendar, rehearsal=given.get("rehearsal", False))


def write_project(project: Project) -> dict[str, object]:
    """Write what a project declares the way it is read; what has its default is left out."""
    calendar = project.calendar
    written: dict[str, object] = {}
    if calendar.zone != UTC:
        written["time_zone"] = str(calendar.zone)
    if calendar.windows:
        written["windows"] = [_write_window(window) for window in calendar.windows]
    if calendar.blackout:
        written["blackout"] = [day.isoformat() for day in sorted(calendar.blackout)]
    if project.rehearsal:
        written["rehearsal"] = True
    return written


def _write_window(window: Window) -> dict[str, object]:
    return {
        "days": [DAYS[day] for day in sorted(window.days)],
        "start": f"{window.start:%H:%M}",
        "length": window.length.total_seconds(),
    }


def _window(value: object, where: str) -> Window:
    given = fields.read(fields.table(value, where), _WINDOW, f"{where}.")
    for key in ("start", "length"):
        if key not in given:
            raise Invalid(f"{where}.{key}: expected {_EXPECTED[key]}, but it is missing")
    return Window(
        days=given.get("days", frozenset(range(len(DAYS)))), start=given["start"], length=given["length"]
    )


def _days(value: object) -> frozenset[int]:
    found = [DAYS.index(day) for day in fields.sequence(value) if isinstance(day, str) and day in DAYS]
    if not found or len(found) != len(fields.sequence(value)):
        raise Invalid(f"expected some of {', '.join(DAYS)}, got {_written(value)}")
    return frozenset(found)


def _clock_time(value: object) -> time:
    if not isinstance(value, str) or not _CLOCK_TIME.fullmatch(value):
        raise Invalid(f"expected {_EXPECTED['start']}, got {shown(value)}")
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


_EXPECTED = {"start": "a time of day as 22:00", "length": "a time as 4h"}

_WINDOW: Readers = {"days": _days, "start": _clock_time, "length": fields.span(*_WINDOW_LENGTH)}

_PROJECT: Readers = {
    "time_zone": _zone,
    "windows": fields.sequence,
    "blackout": _blackout,
    "rehearsal": fields.flag,
}
