"""Background tasks that fail are logged, counted and restarted; after a stop they are not."""

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from forewarn.supervision import KEEPS_FAILING, BackgroundTask, RestartPace, Supervisor
from tests.helpers.programs.process import PATIENCE, until

AT_ONCE = RestartPace(first=0, longest=0, sound_after=20)
FOR_EVER = RestartPace(first=3600, longest=3600)
LOCK = BackgroundTask.LOCK


class Time:
    """Monotonic time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Faulty:
    """A task that raises the given errors, one in each run, and then returns."""

    def __init__(self, *errors: BaseException, before: Callable[[int], None] = lambda run: None) -> None:
        self._errors = list(errors)
        self._before = before
        self.runs = 0

    def __call__(self) -> None:
        self.runs += 1
        self._before(self.runs)
        if self._errors:
            raise self._errors.pop(0)

    async def asynchronous(self) -> None:
        await asyncio.sleep(0)
        self()


def performed(supervisor: Supervisor, work: Faulty, *, on_a_loop: bool) -> None:
    if on_a_loop:
        asyncio.run(supervisor.run_async(LOCK, work.asynchronous))
    else:
        supervisor.run(LOCK, work)


both = pytest.mark.parametrize("on_a_loop", [False, True], ids=["thread", "loop"])


@both
def test_a_task_that_fails_is_logged_counted_and_restarted(
    on_a_loop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, work = Supervisor(pace=AT_ONCE), Faulty(ValueError("one"), SystemExit("two"))
    performed(supervisor, work, on_a_loop=on_a_loop)
    assert work.runs == 3
    assert supervisor.restarts() == {task: 2 if task is LOCK else 0 for task in BackgroundTask}
    assert [each.message for each in caplog.records] == ["background task lock failed; restart in 0 s"] * 2
    assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["one", "two"]
    assert supervisor.trouble() is None  # the task has returned


@both
def test_a_task_that_keeps_failing_is_trouble_until_it_runs_for_a_while(on_a_loop: bool) -> None:
    time = Time()
    supervisor = Supervisor(pace=AT_ONCE, monotonic=time)
    seen: list[str | None] = []

    def look(run: int) -> None:
        seen.append(supervisor.trouble())
        if run == KEEPS_FAILING + 1:
            time.now += AT_ONCE.sound_after - 1
            seen.append(supervisor.trouble())
            time.now += 1
            seen.append(supervisor.trouble())
            assert supervisor.failing()[LOCK] == 0

    performed(supervisor, Faulty(*[ValueError()] * KEEPS_FAILING, before=look), on_a_loop=on_a_loop)
    trouble = "background task lock keeps failing; the log says why"
    assert seen == [*[None] * KEEPS_FAILING, trouble, trouble, None]


def test_the_count_of_failures_restarts_after_a_long_run() -> None:
    time = Time()
    supervisor = Supervisor(pace=AT_ONCE, monotonic=time)

    def run(number: int) -> None:
        assert supervisor.trouble() is None
        time.now += AT_ONCE.sound_after

    supervisor.run(LOCK, Faulty(*[ValueError()] * 10, before=run))


def test_a_task_that_no_request_depends_on_does_not_affect_readiness() -> None:
    supervisor = Supervisor(pace=AT_ONCE)
    seen: list[tuple[str | None, int]] = []
    work = Faulty(
        *[ValueError()] * KEEPS_FAILING,
        before=lambda run: seen.append((supervisor.trouble(), supervisor.failing()[LOCK])),
    )
    asyncio.run(supervisor.run_async(LOCK, work.asynchronous, counts_for_readiness=False))
    assert seen == [*[(None, 0)] * KEEPS_FAILING, (None, 1)]


def test_the_pauses_double_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    pace = RestartPace(first=0.001, longest=0.004)
    Supervisor(pace=pace).run(LOCK, Faulty(*[ValueError()] * 5))
    pauses = [each.message.rpartition(" in ")[2] for each in caplog.records]
    assert pauses == ["0.001 s", "0.002 s", "0.004 s", "0.004 s", "0.004 s"]


@both
def test_a_stop_ends_a_pause_and_a_task_that_fails_again_is_not_restarted(on_a_loop: bool) -> None:
    supervisor, work = Supervisor(pace=FOR_EVER), Faulty(*[ValueError()] * 5)
    thread = threading.Thread(target=lambda: performed(supervisor, work, on_a_loop=on_a_loop))
    thread.start()
    until(lambda: work.runs == 1, what="the first run")
    supervisor.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert work.runs == 2  # a last run, to finish its work
    performed(supervisor, later := Faulty(*[ValueError()] * 5), on_a_loop=on_a_loop)
    assert later.runs == 1


def test_a_cancelled_task_ends_but_a_cancelled_awaitable_is_a_failure() -> None:
    async def run() -> None:
        supervisor, begun = Supervisor(pace=AT_ONCE), asyncio.Event()
        runs = 0

        async def work() -> None:
            nonlocal runs
            runs += 1
            if runs == 1:
                answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                answer.cancel()
                await answer
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(supervisor.run_async(LOCK, work))
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        assert supervisor.restarts()[LOCK] == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert runs == 2

    asyncio.run(run())


def test_a_task_can_be_cancelled_during_its_pause() -> None:
    async def run() -> None:
        supervisor, work = Supervisor(pace=FOR_EVER), Faulty(ValueError())
        task = asyncio.create_task(supervisor.run_async(LOCK, work.asynchronous))
        while not work.runs:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_every_task_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs/reference/metrics.md"
    _, _, tasks = page.read_text().partition("## Background tasks")
    assert sorted(re.findall(r"^\| `([a-z-]+)` \| ", tasks, re.MULTILINE)) == sorted(
        ["task", *BackgroundTask]
    )
