"""A store records the kind of its clock, so that simulated time is not taken for real time."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from forewarn.clock import ManualClock, SystemClock
from forewarn.config import Settings
from forewarn.core.access import Grant, Role
from forewarn.core.errors import Conflict
from forewarn.core.model.clock_slew import TOLERANCE, TimeKind
from forewarn.server import local_tokens
from forewarn.server.preparation import PreparedServer, drivers_of, prepare_server
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import Program, run

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
SPARE = timedelta(minutes=10)  # far longer than a test runs


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


def opened(url: str, clock: str) -> PreparedServer:
    settings = Settings(database=url, clock=clock)
    return prepare_server(settings, drivers_of(settings))


def left_ahead(url: str, ahead: timedelta, *, kind: TimeKind | None) -> datetime:
    """Make a store whose time is ahead of the system clock; return its time."""
    service = opened(url, "manual")
    reached = SystemClock().now() + ahead
    with writing(service.store) as tx:
        tx.time.set_reached(reached)
        tx.time.set_kind(kind)  # type: ignore[arg-type]  # the state of an older release
    service.store.close()
    return reached


@pytest.mark.parametrize("kind", [TimeKind.TURNED, None])
def test_simulated_time_that_is_ahead_is_refused_for_the_system_clock(
    url: str, kind: TimeKind | None
) -> None:
    reached = left_ahead(url, DAY, kind=kind)
    with pytest.raises(
        Conflict, match=r"uses simulated time, .* ahead of the system clock: restart with --clock x1 .*--data"
    ):
        opened(url, "system")
    with pytest.raises(Conflict):  # the second time, too
        opened(url, "system")
    service = opened(url, "x1")
    assert reached <= service.clock.now() < reached + SPARE
    service.store.close()


@pytest.mark.parametrize("ahead", [TOLERANCE - 10 * SECOND, -DAY])
@pytest.mark.parametrize("kind", [TimeKind.TURNED, None])
def test_simulated_time_that_the_system_clock_has_reached_continues_as_system_time(
    url: str, ahead: timedelta, kind: TimeKind | None
) -> None:
    reached = left_ahead(url, ahead, kind=kind)
    service = opened(url, "system")
    assert service.clock.now() >= reached
    with service.store.read() as snapshot:
        assert snapshot.time.kind() is TimeKind.SYSTEM
    service.store.close()


def test_a_system_clock_that_was_set_back_causes_a_warning_at_the_start(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The store has always used the system clock."""
    reached = left_ahead(url, 26 * HOUR, kind=TimeKind.SYSTEM)
    service = opened(url, "system")
    assert service.clock.now() >= reached
    assert 26 * HOUR - SPARE < service.clock.offset <= 26 * HOUR
    assert "service time is 1 d" in caplog.text
    assert "ahead of the system clock (clock system)" in caplog.text
    service.store.close()


def test_after_the_clock_was_set_back_the_api_shows_the_slower_service_time(tmp_path: Path) -> None:
    left_ahead(f"sqlite:///{tmp_path / 'forewarn.db'}", 3 * HOUR, kind=TimeKind.SYSTEM)
    with Program(tmp_path, clock="system") as program:
        assert program.get("/v1/clock")["speed"] == 0.5
        shown = run(tmp_path, "--server", program.operators, "clock", "show").stdout
        assert "(system: slowed to 0.5 until the system's time catches up)" in shown
        assert "ahead of the system's time, for " in shown
        assert "\nforewarn_clock_offset_seconds 1" in program.call("GET", "/metrics").text


@pytest.mark.parametrize(
    ("clock", "kind"), [("system", TimeKind.SYSTEM), ("manual", TimeKind.TURNED), ("x60", TimeKind.TURNED)]
)
def test_a_new_store_records_the_kind_of_its_clock(url: str, clock: str, kind: TimeKind) -> None:
    service = opened(url, clock)
    with service.store.read() as snapshot:
        assert snapshot.time.kind() is kind
    service.store.close()


def test_a_token_created_on_the_store_does_not_change_its_time(url: str) -> None:
    reached = left_ahead(url, -DAY, kind=TimeKind.TURNED)
    local_tokens.create(url, Grant(name="ops", role=Role.OPERATOR), say=lambda _: None)
    service = opened(url, "manual")
    assert isinstance(service.clock, ManualClock)
    assert reached <= service.clock.now() < reached + 3 * SECOND
    service.store.close()


def test_a_server_on_the_system_clock_is_refused_after_the_tutorial_in_one_line(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.advance(DAY.total_seconds())
        clock = program.get("/v1/clock/offset")
        assert (DAY - SPARE).total_seconds() < clock["offset_seconds"] < (DAY + SPARE).total_seconds()
        shown = run(tmp_path, "--server", program.operators, "clock", "show").stdout
        assert "ahead of the system's time" in shown
        metrics = program.call("GET", "/metrics").text
        assert "\nforewarn_clock_offset_seconds 8" in metrics
        assert program.stop() == 0
    ran = run(tmp_path, "serve", "--operator", "127.0.0.1:0", "--guest", "127.0.0.1:0")
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert "--clock x1 (make run CLOCK=x1) to continue in simulated time" in line
    assert "use another --database (FOREWARN_DATABASE=…)" in line
    with Program(tmp_path, clock="x1") as program:
        assert program.get("/v1/clock/offset")["offset_seconds"] > (DAY - SPARE).total_seconds()
        program.err.wait_for("ahead of the system clock (clock x1)")
