"""Declared projects: windows, blackout days and rehearsals, parsed and written."""

import tomllib
from datetime import UTC, date, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from forewarn.cli.views.fleet_view import fleet_file
from forewarn.core.errors import Invalid
from forewarn.core.model.project import Project, Window
from forewarn.wire.fleet import read_fleet, write_fleet

DECLARED = """
[projects.shop]
time-zone = "Europe/Berlin"
blackout = [2026-12-24, "2026-12-31/2027-01-02"]
rehearsal = true

[[projects.shop.windows]]
days = ["sat", "sun"]
start = "22:00"
length = "4h"

[[projects.shop.windows]]
start = "03:30"
length = 1800
"""


def shop(text: str = DECLARED) -> Project:
    projects = {project.name: project for project in read_fleet(tomllib.loads(text)).projects}
    return projects["shop"]  # type: ignore[index]


def test_a_declared_project_is_parsed() -> None:
    read = shop()
    assert read.rehearsal
    assert read.calendar.zone == ZoneInfo("Europe/Berlin")
    assert read.calendar.windows == (
        Window(days=frozenset({5, 6}), start=time(22), length=timedelta(hours=4)),
        Window(days=frozenset(range(7)), start=time(3, 30), length=timedelta(minutes=30)),
    )
    days = {date(2026, 12, 24), date(2026, 12, 31), date(2027, 1, 1), date(2027, 1, 2)}
    assert read.calendar.blackout == days


def test_a_project_without_windows_may_be_disturbed_at_any_time() -> None:
    read = shop("[projects.shop]")
    assert read.calendar.always
    assert read.calendar.zone is UTC
    assert not read.rehearsal


def test_a_written_project_is_parsed_back_unchanged() -> None:
    spec = read_fleet(tomllib.loads(DECLARED))
    written = write_fleet(spec)
    assert read_fleet(written) == spec
    assert read_fleet(tomllib.loads(fleet_file(written))) == spec  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time-zone": "Berlin"}, "time-zone: expected an IANA time zone such as Europe/Berlin"),
        ({"time-zone": "../etc/passwd"}, "time-zone: expected an IANA time zone such as Europe/Berlin"),
        ({"time-zone": 1}, "time-zone: expected an IANA time zone such as Europe/Berlin"),
        ({"windows": "sat"}, "windows: expected a list"),
        (
            {"windows": [{"start": "22:00"}]},
            "windows[0].length: expected a time such as 4h, but it is missing",
        ),
        ({"windows": [{"length": "4h"}]}, "windows[0].start: expected a time of day such as 22:00"),
        ({"windows": [{"start": "22", "length": "4h"}]}, "windows[0].start: expected a time of day"),
        (
            {"windows": [{"start": "22:00", "length": "8d"}]},
            "windows[0].length: expected a time from 1 m to 7 d",
        ),
        ({"windows": [{"days": ["Sat"]}]}, "windows[0].days: expected weekdays of mon, tue"),
        ({"windows": [{"days": []}]}, "windows[0].days: expected weekdays of mon, tue"),
        ({"windows": [{"begin": "22:00"}]}, "windows[0].begin: there is no such field"),
        ({"blackout": ["24.12.2026"]}, "blackout: expected a day such as 2026-12-24"),
        ({"blackout": ["2026-12-24/2026-12-01"]}, "blackout: expected a day such as 2026-12-24"),
        ({"blackout": ["2026-12-24/2036-12-01"]}, "blackout: expected a day such as 2026-12-24"),
        ({"blackout": ["9999-12-31"]}, "blackout: expected a day such as 2026-12-24"),
        ({"windows": [{}] * 51}, "windows: expected at most 50"),
        ({"rehearsal": "yes"}, "rehearsal: expected true or false"),
    ],
)
def test_an_invalid_project_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_fleet({"projects": {"shop": settings}})
    assert str(refused.value).startswith(f"projects.shop: {message}")
