"""Deadlines: a database that says nothing is given up, one that is slow is not."""

import threading
from collections.abc import Generator, Iterator

import pytest

from forewarn.core.errors import Unavailable
from forewarn.store.opening import deadlines as module
from forewarn.store.opening.deadlines import LONGEST_STATEMENT, SILENT_AFTER, Deadlines, Silent, TooLong
from forewarn.supervision import RestartPace, Supervisor
from tests.helpers.programs.no_thread import no_thread
from tests.helpers.programs.process import until


class Clock:
    """Real time, as the test turns it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    turned = Clock()
    monkeypatch.setattr(module, "monotonic", turned)
    return turned


class Database:
    """Answers those who ask whether it lives."""

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
    """Wait as a driver does, until there is something."""
    while not (yield "read"):
        pass
    return "row"


def hear(steps: Generator[str, int, str], ready: int) -> str | None:
    """Tell a driver whether there is something; return what it has read."""
    try:
        steps.send(ready)
    except StopIteration as done:
        result: str = done.value
        return result
    return None


def begin(deadlines: Deadlines) -> Generator[str, int, str]:
    steps = deadlines.ended(waiting())
    next(steps)
    return steps


def test_what_is_answered_is_returned(deadlines: Deadlines, clock: Clock) -> None:
    steps = begin(deadlines)
    clock.now += SILENT_AFTER / 2
    assert hear(steps, 0) is None
    assert hear(steps, 1) == "row"


def test_a_database_that_is_silent_is_given_up(
    deadlines: Deadlines, clock: Clock, database: Database
) -> None:
    database.lives = False
    steps = begin(deadlines)
    clock.now += SILENT_AFTER
    with pytest.raises(Silent):
        hear(steps, 0)


def test_a_statement_that_takes_long_goes_on_while_the_database_lives(
    deadlines: Deadlines, clock: Clock, database: Database
) -> None:
    steps = begin(deadlines)
    for _ in range(3):
        clock.now += SILENT_AFTER
        assert hear(steps, 0) is None
    assert database.asked == 3
    clock.now = LONGEST_STATEMENT + 1
    with pytest.raises(TooLong):
        hear(steps, 0)


def test_before_it_is_served_a_database_may_take_as_long_as_it_likes(clock: Clock) -> None:
    steps = begin(Deadlines(name="fleet"))
    clock.now += 1000 * SILENT_AFTER
    assert hear(steps, 0) is None


def test_once_it_is_known_to_be_silent_nobody_waits_for_it(deadlines: Deadlines, database: Database) -> None:
    database.lives = False
    steps = begin(deadlines)
    deadlines.fell_silent()
    with pytest.raises(Silent):
        hear(steps, 0)
    with pytest.raises(Unavailable, match="fleet does not answer; nothing was done by this call"):
        deadlines.check()
    database.lives = True
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    deadlines.check()
    assert deadlines.silences == 1


def test_a_prober_that_fails_is_started_again(deadlines: Deadlines, database: Database) -> None:
    class Broken(Database):
        def ask(self) -> None:
            super().ask()
            if self.asked == 1:
                raise SystemExit("injected")

    broken = Broken()
    deadlines.supervisor = Supervisor(pace=RestartPace(first=0))
    deadlines.arm(broken.ask, ping=database.ask)
    deadlines.fell_silent()
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    assert deadlines.supervisor.restarts()["prober"] == 1


def test_without_a_thread_for_the_prober_the_database_is_asked_again(
    deadlines: Deadlines, database: Database
) -> None:
    with no_thread():
        deadlines.fell_silent()
    assert deadlines.trouble is None
    deadlines.check()
    deadlines.fell_silent()
    until(lambda: deadlines.trouble is None, what="the prober to be answered")
    assert database.asked == 1


def test_what_is_locked_can_be_read(deadlines: Deadlines, database: Database) -> None:
    database.lives = False
    steps = begin(deadlines)
    deadlines.fell_silent("is being written by another process", reads_too=False)
    assert hear(steps, 0) is None
    deadlines.check(reading=True)
    with pytest.raises(Unavailable, match="is being written by another process"):
        deadlines.check(reading=False)


def test_only_what_takes_long_counts_as_waiting(deadlines: Deadlines, clock: Clock) -> None:
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
