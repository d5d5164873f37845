"""Outages, freezes and jumps of the clock, however long: they are not the guests' silence (rule 12)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.clock import SystemClock
from forewarn.core.access import Grant, Role
from forewarn.core.words import Action, EventStatus, Kind
from forewarn.server.threads.time_watch import TimeWatch
from tests.harness import START, Service, fleet, group, machine
from tests.stores import sqlite_url

MINUTES, HOURS = timedelta(minutes=1), timedelta(hours=1)


class Server:
    """A service on the system's time, which the test turns: wall and monotonic clock apart."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._wall, self._monotonic = START.timestamp(), 100.0
        service.poll("web-0")
        service.engine.prove_present(service.clock.now())
        self.start()

    def start(self) -> None:
        """Start as a program does, after a crash."""
        self._clock = SystemClock(wall=lambda: self._wall, monotonic=lambda: self._monotonic)
        with self.service.store.read() as snapshot:
            reached, present_at = snapshot.time.reached(), snapshot.time.present_at()
        assert reached is not None
        self._clock.start_from(reached)
        self._watch = TimeWatch(self._clock, self.service.engine, present_at=present_at)
        self.look()

    def look(self) -> None:
        """Do what a worker does at least every few seconds."""
        self.service.clock.set(self._watch.look())
        self.service.engine.prove_present(self.service.clock.now())
        self.service.tick()

    def runs(self, span: timedelta) -> None:
        for _ in range(span // MINUTES):
            self._wall += 60
            self._monotonic += 60
            self.look()

    def is_down(self, span: timedelta) -> None:
        self._wall += span.total_seconds()
        self._monotonic = 5.0  # after a reboot
        self.start()

    def is_stopped(self, span: timedelta) -> None:
        """SIGSTOP, or a worker that hangs: both clocks go on."""
        self._wall += span.total_seconds()
        self._monotonic += span.total_seconds()
        self.look()

    def is_suspended(self, span: timedelta) -> None:
        """A suspended computer, or somebody who sets its clock: the monotonic clock stands still."""
        self._wall += span.total_seconds()
        self.look()

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
def test_what_was_announced_is_announced_anew_after_more_than_a_day(server: Server, gone: str) -> None:
    """The guests have their full notice again, and can still cancel."""
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
    assert record.reason == "for 1 d 2 h; that is not the guests' silence"


def test_a_day_of_silence_that_counts_disables_a_group(server: Server) -> None:
    """Twelve hours before and twelve hours after an outage are a day."""
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


def test_a_token_made_while_the_server_is_down_does_not_end_its_absence(server: Server) -> None:
    later = server.service.clock.now() + 25 * HOURS
    server.service.clock.set(later)
    server.service.tokens.create(Grant(name="ann", role=Role.OPERATOR), by="test")
    server.is_down(26 * HOURS)
    assert server.listens


def test_a_day_that_is_turned_is_a_day(server: Server) -> None:
    """A manual or a fast clock does not jump."""
    server.service.advance(hours=24, minutes=11)
    assert not server.listens


def test_a_clock_that_was_set_back_is_told_once_and_so_is_its_end(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="forewarn.server.threads.time_watch")
    server.is_suspended(-2 * HOURS)
    server.runs(3 * MINUTES)
    assert caplog.text.count("the system clock was set back: service time is 2 h ahead of it") == 1
    server.is_suspended(2 * HOURS)
    assert caplog.text.count("service time is the system clock's again") == 1
