"""Outages, freezes and clock jumps do not count as silence of guests (rule 12)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from forewarn.clock import SystemClock
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import DEFAULT_PROJECT, Action, EventStatus, Kind, Work
from forewarn.core.errors import Unavailable
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.server.threads import time_keeping
from forewarn.server.threads.time_keeping import TimeWatch
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import START, Service, fleet, group, machine

MINUTES, HOURS = timedelta(minutes=1), timedelta(hours=1)


class Server:
    """A service on system time, with separate wall and monotonic clocks."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._wall, self._monotonic = START.timestamp(), 100.0
        service.poll("web-0")
        service.engine.save_presence(service.clock.now())
        self.start()

    def start(self) -> None:
        """Start as a program does after a crash."""
        self._clock = SystemClock(wall=lambda: self._wall, monotonic=lambda: self._monotonic)
        with self.service.store.read() as snapshot:
            present_at = snapshot.time.present_at()
        time_keeping.begin(self._clock, self.service.store, name="it", system=self.system)
        self._watch = TimeWatch(self._clock, self.service.engine, present_at=present_at)
        self.look()

    def look(self) -> None:
        """Do what a worker does at least every few seconds."""
        self.service.clock.set(self._watch.look())
        self.service.engine.save_presence(self.service.clock.now(), ahead=self._watch.ahead())
        self.service.tick()

    def runs(self, span: timedelta) -> None:
        for _ in range(span // MINUTES):
            self._wall += 60
            self._monotonic += 60
            self.look()

    def second_passes(self) -> None:
        self._wall += 1
        self._monotonic += 1
        self.look()

    def passes_unsaved(self, span: timedelta) -> datetime:
        """Advance the time between two looks; return what guests see then."""
        self._wall += span.total_seconds()
        self._monotonic += span.total_seconds()
        return self._clock.now()

    def is_down(self, span: timedelta) -> None:
        self._wall += span.total_seconds()
        self._monotonic = 5.0  # after a reboot
        self.start()

    def is_stopped(self, span: timedelta) -> None:
        """SIGSTOP, or a worker that hangs: both clocks continue."""
        self._wall += span.total_seconds()
        self._monotonic += span.total_seconds()
        self.look()

    def is_suspended(self, span: timedelta) -> None:
        """A suspended computer, or a clock that was set: the monotonic clock stops."""
        self._wall += span.total_seconds()
        self.look()

    @property
    def system(self) -> datetime:
        """The system time."""
        return datetime.fromtimestamp(self._wall, UTC)

    @property
    def listens(self) -> bool:
        return self.service.everything().groups["web"].enabled  # type: ignore[index]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(group("web"), machine("web-0", "host-1", group="web")))
    yield Server(service)
    service.close()


GONE = ["is_down", "is_stopped", "is_suspended"]


@pytest.mark.parametrize("gone", GONE)
def test_after_a_day_without_a_server_events_are_announced_again(server: Server, gone: str) -> None:
    """The guests get their full notice again, and can still cancel."""
    order = server.service.order("web-0", Action.RESTART).order
    getattr(server, gone)(26 * HOURS)
    (event,) = server.service.everything().events.values()
    assert event.status is EventStatus.SCHEDULED
    assert event.announced_at == server.service.clock.now()
    assert server.service.driver.begun == []
    server.service.orders.cancel_order(order.id, by="test")


@pytest.mark.parametrize("gone", GONE)
def test_an_absence_is_recorded_and_disables_no_group(server: Server, gone: str) -> None:
    getattr(server, gone)(26 * HOURS)
    assert server.listens
    (record,) = (each for each in server.service.history() if each.kind == Kind.SERVICE_AWAY)
    assert record.reason == "for 1 d 2 h; this does not count as silence of guests"


def test_a_day_of_silence_that_counts_disables_a_group(server: Server) -> None:
    """Twelve hours before and twelve hours after an outage make a day."""
    server.runs(12 * HOURS)
    server.is_down(30 * HOURS)
    server.runs(12 * HOURS)
    assert server.listens
    server.runs(12 * MINUTES)
    assert not server.listens


def test_a_restart_of_a_minute_is_not_recorded(server: Server) -> None:
    server.runs(10 * MINUTES)
    server.is_down(timedelta(seconds=59))
    assert Kind.SERVICE_AWAY not in {each.kind for each in server.service.history()}


def spans(server: Server) -> list[float]:
    """Return the lengths of the saved absences, in seconds."""
    with server.service.store.read() as snapshot:
        return [(each.until - each.since).total_seconds() for each in snapshot.time.absences()]


@pytest.mark.parametrize(
    ("gone", "counts", "does_not"), [("is_down", 3, 2), ("is_stopped", 8, 7), ("is_suspended", 8, 7)]
)
def test_only_an_absence_above_the_limit_is_recorded(
    server: Server, gone: str, counts: float, does_not: float
) -> None:
    getattr(server, gone)(timedelta(seconds=does_not))
    server.second_passes()
    getattr(server, gone)(timedelta(seconds=counts))
    assert spans(server) == [counts]


def test_an_absence_is_saved_once_the_database_is_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guests got answers meanwhile, so the outage itself is no absence."""

    def is_away(*_: object) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(server.service.engine, "save_absence", is_away)
        for span in (30, 5):
            with pytest.raises(Unavailable):
                server.is_stopped(timedelta(seconds=span))
    server.second_passes()
    assert spans(server) == [30]


def test_a_token_created_while_the_server_is_down_does_not_end_its_absence(server: Server) -> None:
    later = server.service.clock.now() + 25 * HOURS
    server.service.clock.set(later)
    server.service.tokens.create(Grant(name="ann", role=Role.OPERATOR), by="test")
    server.is_down(26 * HOURS)
    assert server.listens


def test_an_advanced_day_counts_as_a_day(server: Server) -> None:
    """A manual or fast clock does not jump."""
    server.service.advance(hours=24, minutes=11)
    assert not server.listens


def test_a_clock_that_was_set_back_is_logged_once_at_its_start_and_end(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="forewarn.server.threads.time_keeping")
    server.is_suspended(-2 * HOURS)
    server.runs(3 * MINUTES)
    ahead = "the system clock was set back: service time is 2 h ahead of it, and runs at half speed"
    assert caplog.text.count(f"{ahead} until they are equal in 4 h") == 1
    server.is_suspended(2 * HOURS)
    assert caplog.text.count("service time equals the system clock again") == 1


def test_a_clock_weeks_behind_is_logged_and_slows_nothing_down(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.is_suspended(-8 * 24 * HOURS)
    assert "8 d ahead of it, and that is too far to slow down (more than 7 d)" in caplog.text


def test_a_jump_and_its_correction_shorten_no_notice_and_end_automatically(server: Server) -> None:
    server.is_suspended(3 * HOURS)
    server.is_suspended(-3 * HOURS)
    server.runs(MINUTES)
    server.service.order("web-0", Action.RESTART)
    server.runs(29 * MINUTES)  # of the 30 that 15 minutes take now
    assert server.service.driver.begun == []
    server.runs(2 * MINUTES)
    assert len(server.service.driver.begun) == 1
    server.runs(6 * HOURS)
    assert server.service.clock.now() == server.system


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_continues_to_follow_the_system_clock(server: Server, crash: bool) -> None:
    server.is_suspended(3 * HOURS)
    server.is_suspended(-3 * HOURS)
    server.runs(HOURS)
    before = server.service.clock.now()
    server.is_down(HOURS if crash else timedelta())
    assert server.service.clock.now() >= before
    server.runs(5 * HOURS)
    assert server.service.clock.now() == server.system


def open_from_two_to_four(server: Server) -> None:
    window = Window(days=frozenset(range(7)), start=time(14), length=2 * HOURS)
    project = Project(name=DEFAULT_PROJECT, calendar=Calendar(windows=(window,)))
    known = fleet(group("web"), machine("web-0", "host-1", group="web"))
    server.service.apply(replace(known, projects=(project,)))


def test_windows_follow_the_corrected_system_clock(server: Server) -> None:
    open_from_two_to_four(server)
    server.runs(HOURS)
    server.is_suspended(5 * HOURS)
    server.is_suspended(-5 * HOURS)
    server.runs(10 * MINUTES)
    server.service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    server.runs(49 * MINUTES)
    assert server.service.driver.begun == []
    server.runs(3 * MINUTES)
    assert len(server.service.driver.begun) == 1


def test_an_announced_start_waits_for_the_window_if_the_clock_is_corrected(server: Server) -> None:
    open_from_two_to_four(server)
    server.is_suspended(2 * HOURS)  # the clock shows two o'clock
    server.runs(MINUTES)
    server.service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    server.is_suspended(-2 * HOURS)
    server.runs(118 * MINUTES)
    assert server.service.driver.begun == []
    server.runs(30 * MINUTES)
    assert len(server.service.driver.begun) == 1


def test_a_server_that_was_killed_never_shows_an_earlier_time(server: Server) -> None:
    server.is_suspended(3 * HOURS)
    server.is_suspended(-3 * HOURS)
    server.runs(MINUTES)
    shown = server.passes_unsaved(timedelta(seconds=4))
    server.is_down(timedelta())
    assert server.service.clock.now() == shown
