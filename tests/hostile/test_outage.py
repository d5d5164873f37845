"""Outages and jumps of the system clock of up to days: guests keep their notice (rule 12)."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from forewarn.clock import SystemClock, monotonic
from tests.helpers.programs.process import Guest, Program, sample_fleet, until
from tests.helpers.service.counts import LONG
from tests.hostile.faked_clock import INSTALLED, MISSING, WallClock

pytestmark = pytest.mark.skipif(not INSTALLED, reason=MISSING)

MINUTES, HOURS, DAYS = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOTICE = 15 * MINUTES
# How much of the notice may pass on a busy computer before the test checks it.
LATE = 5 * MINUTES
WEB_0 = "127.0.1.10"
BATCH_0 = "127.0.1.30"

# After this time an event is stale: it must be announced again instead of started.
STALE = NOTICE + 30 * MINUTES
OUTAGES = [26 * HOURS, *([2 * MINUTES, 3 * HOURS, 25 * HOURS, 8 * DAYS] if LONG else [])]
JUMPS = [20 * MINUTES, 26 * HOURS, *([2 * MINUTES, 3 * HOURS, 8 * DAYS] if LONG else [])]
JUMPS_BACK = [26 * HOURS, *([2 * MINUTES, HOURS, 8 * DAYS] if LONG else [])]


@pytest.fixture
def wall(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path)


@pytest.fixture
def program(tmp_path: Path, wall: WallClock) -> Iterator[Program]:
    flags = ("--fleet", sample_fleet(tmp_path))
    environment = {**wall.environment, "FOREWARN_GUEST_RATE": "0"}
    with Program(tmp_path, *flags, clock="system", environment=environment) as program:
        program.guest(WEB_0).document()  # enables its group
        yield program


def now(program: Program) -> datetime:
    return datetime.fromisoformat(program.get("/v1/clock")["now"])


def order_restart(program: Program) -> dict[str, Any]:
    event: dict[str, Any] = program.post("/v1/machines/web-0/restart")["event"]
    assert event["status"] == "Scheduled"
    return event


def kinds(program: Program) -> list[str]:
    return [record["kind"] for record in program.history()]


def reasons(program: Program, kind: str) -> list[str]:
    return [record["reason"] for record in program.history() if record["kind"] == kind]


def the_event(guest: Guest) -> dict[str, Any]:
    """Return the only event of the document."""
    (event,) = guest.document()["Events"]
    found: dict[str, Any] = event
    return found


def check_nothing_started(program: Program) -> None:
    """Check that no step has begun, notice is still enabled, and the event can be cancelled."""
    (event,) = program.all("events")
    assert event["status"] == "Scheduled"
    assert {"step-begun", "event-started", "group-disabled"}.isdisjoint(kinds(program))
    assert program.get("/v1/machines/web-0")["machine"]["enabled"]
    assert the_event(program.guest(WEB_0))["EventId"] == event["id"]
    program.post(f"/v1/events/{event['id']}/cancel")
    assert program.guest(WEB_0).document()["Events"] == []
    assert order_restart(program)["id"] != event["id"]  # the next one is announced, too


def check_notice_is_kept(program: Program, before: dict[str, Any], *, lost: timedelta) -> None:
    """Check that the event is unchanged or, if it is stale, replaced by one with full notice from now on."""
    if lost < STALE:
        (event,) = program.all("events")
        assert (event["id"], event["not_before"]) == (before["id"], before["not_before"])
        return
    until(lambda: "event-withdrawn" in kinds(program), what="the withdrawal of a stale event")
    until(lambda: program.all("events"), what="another announcement")
    (event,) = program.all("events")
    assert event["id"] != before["id"]
    left = datetime.fromisoformat(event["not_before"]) - now(program)
    assert NOTICE - LATE < left <= NOTICE + timedelta(seconds=1)
    (announced,) = (each for each in program.history() if each["event"] == event["id"])
    promised = datetime.fromisoformat(event["not_before"]) - datetime.fromisoformat(announced["at"])
    assert promised >= NOTICE


def test_faketime_sets_the_wall_clock_and_not_the_monotonic_clock(wall: WallClock) -> None:
    wall.turn(26 * HOURS)
    script = "import time; print(time.time(), time.monotonic())"
    earliest = SystemClock().seconds(), monotonic()
    said = subprocess.run(
        [sys.executable, "-c", script], env=dict(wall.environment), capture_output=True, text=True, check=True
    )
    latest = SystemClock().seconds(), monotonic()
    seen_wall, seen_monotonic = map(float, said.stdout.split())
    assert earliest[0] <= seen_wall - wall.ahead.total_seconds() <= latest[0]
    assert earliest[1] <= seen_monotonic <= latest[1]


@pytest.mark.parametrize("away", OUTAGES, ids=str)
def test_an_outage_takes_no_notice_from_guests(program: Program, wall: WallClock, away: timedelta) -> None:
    event, before = order_restart(program), now(program)
    program.kill()
    wall.turn(away)
    program.start()
    assert away <= now(program) - before < away + LATE
    (why,) = until(lambda: reasons(program, "service-away"), what="the absence to be recorded")
    assert "this does not count as silence of guests" in why
    check_notice_is_kept(program, event, lost=away)
    check_nothing_started(program)


def test_a_notice_that_was_lost_in_a_short_outage_counts_as_late(program: Program, wall: WallClock) -> None:
    """The guest polls whenever the server runs, and first sees its event as Started."""
    event: dict[str, Any] = program.post("/v1/machines/batch_0/evict")["event"]
    program.kill()
    # Less than a minute, because a longer absence is recorded; on a busy computer the start takes time, too.
    wall.turn(timedelta(seconds=31))
    program.start()
    until(
        lambda: program.get(f"/v1/events/{event['id']}")["event"]["status"] == "Started", what="the eviction"
    )
    program.post("/v1/hosts/host-3/cordon")  # after its answer, guests see everything saved before
    (shown,) = program.guest(BATCH_0).document()["Events"]
    assert (shown["EventType"], shown["EventStatus"]) == ("Preempt", "Started")
    (notice,) = program.get(f"/v1/events/{event['id']}")["event"]["notices"]
    assert notice["late"]
    assert "service-away" not in kinds(program)


@pytest.mark.parametrize("by", JUMPS, ids=str)
def test_a_jump_of_the_clock_starts_nothing(program: Program, wall: WallClock, by: timedelta) -> None:
    """It does not disable a group, either."""
    event, before = order_restart(program), now(program)
    wall.turn(by)
    until(lambda: "clock-jumped" in kinds(program), what="the jump to be noticed")
    assert by <= now(program) - before < by + LATE
    until(lambda: "service-away" in kinds(program), what="the absence to be recorded")
    check_notice_is_kept(program, event, lost=by)
    check_nothing_started(program)


@pytest.mark.parametrize("by", JUMPS_BACK, ids=str)
def test_time_does_not_go_back_with_the_clock(program: Program, wall: WallClock, by: timedelta) -> None:
    """It follows the monotonic clock, even across a crash. A corrected clock does not count as a jump."""
    event, before = order_restart(program), now(program)
    wall.turn(-by)
    assert before <= now(program) < before + LATE
    guest = program.guest(WEB_0)
    assert parsedate_to_datetime(guest.poll().headers["date"]) >= before.replace(microsecond=0)
    program.kill()
    program.start()
    # Times of records are saved. A time that was only shown is saved every few seconds.
    assert now(program) >= datetime.fromisoformat(program.history()[-1]["at"])
    (kept,) = program.all("events")
    assert (kept["id"], kept["not_before"]) == (event["id"], event["not_before"])
    wall.turn(by)
    until(lambda: now(program) - before < LATE, what="the corrected clock")
    assert {"clock-jumped", "event-withdrawn"}.isdisjoint(kinds(program))
    check_nothing_started(program)
