"""The threads that call drivers: a call that hangs delays no other, and every answer reaches the worker."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count

import pytest

from forewarn.clock import SystemClock, monotonic
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Running,
    Unknown,
)
from forewarn.control.engine.driver_calls import CallAnswer, DriverCall, Verb
from forewarn.core.basic_types import MachineId
from forewarn.core.errors import Unavailable
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.server.threads import lanes as threads_lanes
from forewarn.server.threads.lane_queues import LaneBounds
from forewarn.server.threads.lanes import Lanes
from forewarn.supervision import RestartPace, Supervisor
from tests.helpers.programs.no_thread import no_thread
from tests.helpers.programs.process import until
from tests.helpers.service.driver_calls import begin, check
from tests.helpers.service.racing import at_once

PATIENCE = 30.0


class HangingDriver:
    """Answers `begin` when the test releases it, and other calls at once."""

    def __init__(self, *, timeout: float = PATIENCE, at_once: int = 1) -> None:
        self.limits = DriverLimits(timeout=timedelta(seconds=timeout), at_once=at_once)
        self.go = threading.Event()
        self.called = threading.Semaphore(0)
        self.threads: set[str] = set()

    def begin(self, task: DriverTask) -> Begun:
        self.threads.add(threading.current_thread().name)
        self.called.release()
        assert self.go.wait(PATIENCE)
        return Done()

    def check(self, task: DriverTask) -> Checked:
        self.called.release()
        if task.mark == "ends its thread":
            raise SystemExit
        if task.mark == "breaks":
            raise OSError("cannot be reached")
        return Running(None)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        return Cancelled()


class Inbox:
    """A stand-in for the worker that takes answers on the calling thread."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self.answers: list[CallAnswer] = []
        self.failures = 0

    def post(self, work: Callable[[], None]) -> "Future[None]":
        done: Future[None] = Future()
        try:
            work()
        except Unavailable as error:
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def take(self, answers: Sequence[CallAnswer]) -> None:
        with self._news:
            if self.failures:
                self.failures -= 1
                raise Unavailable("the database is away")
            self.answers += answers
            self._news.notify_all()

    def wait_for(self, many: int) -> list[tuple[str, object]]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.answers) >= many, PATIENCE)
            return [(each.call.task.machine.name, each.answer) for each in self.answers]


@contextmanager
def lanes_of(
    driver: HangingDriver,
    inbox: Inbox,
    *,
    reached: Callable[[CallAnswer], None] = lambda _: None,
    **bounds: int,
) -> Iterator[Lanes]:
    lanes = Lanes(
        {"test": driver},
        post=inbox.post,
        real_now=SystemClock().now,
        monotonic=monotonic,
        bounds=LaneBounds(**bounds),
    )
    lanes.deliver_to(take=inbox.take, reached=reached, planned=lambda _: None)
    try:
        yield lanes
    finally:
        driver.go.set()
        lanes.stop()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def test_a_driver_that_hangs_delays_no_other_host(inbox: Inbox) -> None:
    driver = HangingDriver()
    with lanes_of(driver, inbox) as lanes:
        lanes.submit(begin("stuck", host="a"))
        lanes.submit(check("sound", host="b"))
        assert inbox.wait_for(1) == [("sound", Running(None))]
        driver.go.set()
        assert inbox.wait_for(2)[1] == ("stuck", Done())


def test_a_call_that_hangs_times_out_and_its_late_answer_still_counts(inbox: Inbox) -> None:
    driver = HangingDriver(timeout=0.01)
    with lanes_of(driver, inbox) as lanes:
        lanes.submit(begin("stuck"))
        assert inbox.wait_for(1) == [
            ("stuck", Unknown(f"{driver_named('test')} has not answered begin within 0.01 s"))
        ]
        assert inbox.answers[0].hangs
        assert lanes.counts().hung == {"test": 1}
        driver.go.set()
        assert inbox.wait_for(2)[1] == ("stuck", Done())
        assert lanes.counts().hung == {"test": 0}


def test_a_thread_that_hangs_is_replaced(inbox: Inbox) -> None:
    driver = HangingDriver(timeout=0.01)
    with lanes_of(driver, inbox, calls=1) as lanes:
        lanes.submit(begin("stuck"))
        inbox.wait_for(1)
        driver.limits = DriverLimits(timeout=timedelta(seconds=PATIENCE), at_once=1)
        lanes.submit(check("next"))
        assert inbox.wait_for(2)[1] == ("next", Running(None))


def test_a_host_has_no_more_calls_than_its_limit(inbox: Inbox) -> None:
    driver = HangingDriver(at_once=2)
    with lanes_of(driver, inbox) as lanes:
        for number in range(3):
            lanes.submit(begin(f"web-{number}"))
        for _ in range(2):
            assert driver.called.acquire(timeout=PATIENCE)
        assert lanes.counts().running == {"test": 2}
        driver.go.set()
        inbox.wait_for(3)


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("breaks", f"{driver_named('test')} broke: cannot be reached"),
        ("ends its thread", f"{driver_named('test')} broke: SystemExit()"),
    ],
)
def test_an_exception_of_a_driver_makes_the_step_unknown(inbox: Inbox, mark: str, why: str) -> None:
    with lanes_of(HangingDriver(), inbox) as lanes:
        lanes.submit(check("web-0", mark=mark))
        lanes.submit(check("web-1"))
        assert inbox.wait_for(2) == [("web-0", Unknown(why)), ("web-1", Running(None))]


def test_answers_that_cannot_be_saved_are_delivered_again(inbox: Inbox) -> None:
    inbox.failures = 1
    with lanes_of(HangingDriver(), inbox) as lanes:
        lanes.submit(check("web-0"))
        assert inbox.wait_for(1) == [("web-0", Running(None))]


def test_a_check_waits_until_it_is_due_or_woken(inbox: Inbox) -> None:
    with lanes_of(HangingDriver(), inbox) as lanes:
        lanes.submit(check("web-0", at=SystemClock().now() + timedelta(hours=1)))
        assert inbox.answers == []
        lanes.wake(check("web-0").task.machine.id)
        assert inbox.wait_for(1) == [("web-0", Running(None))]


def test_calls_get_the_real_time(inbox: Inbox) -> None:
    seen: list[DriverTask] = []

    class Noting(HangingDriver):
        def check(self, task: DriverTask) -> Checked:
            seen.append(task)
            return Done()

    before = SystemClock().now()
    with lanes_of(Noting(), inbox) as lanes:
        lanes.submit(check("web-0"))
        inbox.wait_for(1)
    assert seen[0].now >= before


class BreakingClock:
    """Real time; raises once on each of these threads."""

    def __init__(self, *threads: str) -> None:
        self._left = set(threads)

    def __call__(self) -> float:
        name = threading.current_thread().name
        if name in self._left:
            self._left.remove(name)
            raise SystemExit("injected")
        return monotonic()


def test_threads_of_lanes_that_fail_are_restarted(inbox: Inbox) -> None:
    driver = HangingDriver(timeout=0.01)
    supervisor = Supervisor(pace=RestartPace(first=0))
    lanes = Lanes(
        {"test": driver},
        post=inbox.post,
        real_now=SystemClock().now,
        monotonic=BreakingClock("forewarn-lane", "forewarn-lane-timer"),
        supervisor=supervisor,
    )
    lanes.deliver_to(take=inbox.take, reached=lambda _: None, planned=lambda _: None)
    lanes.submit(check("lost"))
    given_up = ("lost", Unknown(f"{driver_named('test')} has not answered check within 0.01 s"))
    assert inbox.wait_for(1) == [given_up]  # by the timer
    driver.limits = DriverLimits(timeout=timedelta(seconds=PATIENCE), at_once=1)
    lanes.submit(check("sound", host="b"))
    assert inbox.wait_for(2)[1] == ("sound", Running(None))
    restarts = supervisor.restarts()
    assert (restarts["lane"], restarts["lane-timer"]) == (1, 1)
    lanes.stop()


@pytest.mark.parametrize("is_started", [False, True])
def test_calls_without_a_thread_are_made_later(
    inbox: Inbox, is_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads_lanes, "RETRY_AFTER", 0.05)
    with lanes_of(HangingDriver(), inbox) as lanes:
        if is_started:
            lanes.start()
        with no_thread():
            lanes.submit(check("web-0", host="a"))
            lanes.submit(check("web-1", host="b"))
            assert lanes.counts().running.get("test", 0) == 0
        if not is_started:
            lanes.wake(MachineId("any"))
        assert sorted(inbox.wait_for(2)) == [("web-0", Running(None)), ("web-1", Running(None))]
        assert lanes.counts().running == {"test": 0}


def test_an_answer_that_cannot_be_passed_on_blocks_no_other(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: CallAnswer) -> None:
        raise RuntimeError("injected")

    with lanes_of(HangingDriver(), inbox, reached=broken) as lanes:
        lanes.submit(replace(check("web-0"), verb=Verb.REACH))
        until(lambda: "cannot note whether a host is reachable" in caplog.text, what="the answer")
        lanes.submit(check("web-0"))
        assert inbox.wait_for(1) == [("web-0", Running(None))]


def test_a_stop_does_not_wait_for_calls_that_hang(inbox: Inbox) -> None:
    driver = HangingDriver(timeout=0.01)
    with lanes_of(driver, inbox) as lanes:
        lanes.submit(begin("stuck"))
        inbox.wait_for(1)
        lanes.stop()
        assert not driver.go.is_set()
        lanes.submit(check("too late"))
        assert lanes.counts().running == {"test": 0}


def test_calls_are_counted_by_their_answers(inbox: Inbox) -> None:
    with lanes_of(HangingDriver(), inbox) as lanes:
        numbers = count(1)
        for name in ("web-0", "web-1"):
            lanes.submit(check(name))
            inbox.wait_for(next(numbers))
        counts = lanes.counts()
    assert counts.answered == {("test", "check", "running"): 2}
    assert counts.durations["test", "check"].up_to[-1] == 2


def test_concurrent_threads_make_or_withdraw_each_call_exactly_once() -> None:
    driver, inbox = HangingDriver(at_once=2), Inbox()
    driver.go.set()
    calls = [begin(f"web-{number}", host=f"host-{number % 3}") for number in range(24)]
    with lanes_of(driver, inbox, calls=4) as lanes:

        def submit(some: Sequence[DriverCall]) -> None:
            for call in some:
                lanes.submit(call)
                lanes.wake(call.task.machine.id)

        def withdraw() -> None:
            for call in calls[::4]:
                lanes.withdraw(call.task.id)

        at_once([partial(submit, calls[:12]), partial(submit, calls[12:]), withdraw, withdraw])
        last = check("last", host="host-0")
        lanes.submit(last)
        wanted = {call.task.id for number, call in enumerate(calls) if number % 4} | {last.task.id}

        def answered() -> list[AttemptId]:
            return [each.call.task.id for each in inbox.answers]

        until(lambda: wanted <= set(answered()), what="all to be answered that are not withdrawn")
        until(lambda: not lanes.counts().running["test"], what="all to return")
        assert len(answered()) == len(set(answered()))
