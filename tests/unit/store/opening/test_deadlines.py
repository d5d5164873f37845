"""Deadlines end waits for a database that does not answer, but not for a slow one."""

import threading
from collections.abc import Generator, Iterator

import pytest

from forewarn.core.errors import Unavailable
from forewarn.store.opening import deadlines as module
from forewarn.store.opening.deadlines import (
    LONGEST_STATEMENT,
    SILENT_AFTER,
    Deadlines,
    StatementTooLong,
    Unresponsive,
)
from forewarn.supervision import RestartPace, Supervisor
from tests.helpers.programs.no_thread import no_thread
from tests.helpers.programs.process import until


class Clock:
    """A clock that the test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    turned = Clock()
    monkeypatch.setattr(module, "monotonic", turned)
    return turned


class Database:
    """A database that answers pings, or fails them."""

    lives = True
    asked = 0

    def ask(self) -> None:
        self.asked += 1
        if not self.lives:
            raise TimeoutError


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def deadlines(clock: Clock, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deadlines]:
    monkeypatch.setattr(module, "PROBE_EVERY", 0)
    made = Deadlines(name="fleet")
    made.arm(database.ask, ping=database.ask)
    yield made
    made.disarm()


def waiting() -> Generator[str, int, str]:
    """Wait like a driver, until data arrives."""
    while not (yield "read"):
        pass
    return "row"


def hear(steps: Generator[str, int, str], ready: int) -> str | None:
    """Send the driver whether data has arrived; return its result."""
    try:
        steps.send(ready)
    except StopIteration as done:
        result: str = done.value
        return result
    return None


def begin(deadlines: Deadlines) -> Generator[str, int, str]:
    steps = deadlines.with_deadline(waiting())
    next(steps)
    return steps


def test_an_answer_is_returned(deadlines: Deadlines, clock: Clock) -> None:
    steps = begin(deadlines)
    clock.now += SILENT_AFTER / 2
    assert hear(steps, 0) is None
    assert hear(steps, 1) == "row"


def test_a_wait_for_a_database_that_does_not_answer_ends(
    deadlines: Deadlines, clock: Clock, database: Database
) -> None:
    database.lives = False
    steps = begin(deadlines)
    clock.now += SILENT_AFTER
    with pytest.raises(Unresponsive):
        hear(steps, 0)


def test_a_long_statement_continues_while_the_database_answers_pings(
    deadlines: Deadlines, clock: Clock, database: Database
) -> None:
    steps = begin(deadlines)
    for _ in range(3):
        clock.now += SILENT_AFTER
        assert hear(steps, 0) is None
    assert database.asked == 3
    clock.now = LONGEST_STATEMENT + 1
    with pytest.raises(StatementTooLong):
        hear(steps, 0)


def test_before_the_server_starts_waits_have_no_limit(clock: Clock) -> None:
    steps = begin(Deadlines(name="fleet"))
    clock.now += 1000 * SILENT_AFTER
    assert hear(steps, 0) is None


def test_calls_fail_fast_while_the_database_does_not_answer(deadlines: Deadlines, database: Database) -> None:
    database.lives = False
    steps = begin(deadlines)
    deadlines.fail_fast()
    with pytest.raises(Unresponsive):
        hear(steps, 0)
    with pytest.raises(Unavailable, match="fleet does not answer; nothing was done by this call"):
        deadlines.check()
    database.lives = True
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    deadlines.check()
    assert deadlines.silences == 1


def test_a_failed_prober_is_restarted(deadlines: Deadlines, database: Database) -> None:
    class Broken(Database):
        def ask(self) -> None:
            super().ask()
            if self.asked == 1:
                raise SystemExit("injected")

    broken = Broken()
    deadlines.supervisor = Supervisor(pace=RestartPace(first=0))
    deadlines.arm(broken.ask, ping=database.ask)
    deadlines.fail_fast()
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    assert deadlines.supervisor.restarts()["prober"] == 1


def test_without_a_thread_for_the_prober_calls_use_the_database_again(
    deadlines: Deadlines, database: Database
) -> None:
    with no_thread():
        deadlines.fail_fast()
    assert deadlines.trouble is None
    deadlines.check()
    deadlines.fail_fast()
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    assert database.asked == 1


def test_a_locked_database_can_be_read(deadlines: Deadlines, database: Database) -> None:
    database.lives = False
    steps = begin(deadlines)
    deadlines.fail_fast("is being written by another process", reads_too=False)
    assert hear(steps, 0) is None
    deadlines.check(reading=True)
    with pytest.raises(Unavailable, match="is being written by another process"):
        deadlines.check(reading=False)


def test_only_slow_statements_count_as_waiting(deadlines: Deadlines, clock: Clock) -> None:
    thread = threading.get_ident()
    for lasted in (0.1, 2.0):
        began = deadlines.begin()
        clock.now += lasted
        deadlines.end(began)
    assert deadlines.waited(thread) == pytest.approx(2.0)
    assert deadlines.waiting(thread) == 0
    deadlines.begin()
    clock.now += 1.0
    assert deadlines.waited(thread) == pytest.approx(3.0)
    assert deadlines.waiting(thread) == pytest.approx(1.0)
