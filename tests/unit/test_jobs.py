"""Jobs: guests wait for one other job at most, and callers for one of each other caller."""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from forewarn.server.threads.jobs import Jobs

GUEST = None


@contextmanager
def waiting(jobs: Jobs, *whose: str | None) -> Iterator[None]:
    """Let jobs wait, each of which answers whose it is."""

    def job(who: str | None, number: int) -> Awaitable[str]:
        run: Callable[..., Awaitable[str]] = jobs.run if who is GUEST else jobs.run_for(who)
        return run(lambda: f"{who or 'guest'} {number}")

    with asyncio.Runner() as runner:

        async def submit() -> list[asyncio.Future[str]]:
            asked = [asyncio.ensure_future(job(who, number)) for number, who in enumerate(whose)]
            await asyncio.sleep(0)
            return asked

        runner.run(submit())
        yield


def order(jobs: Jobs, count: int) -> list[str]:
    found = [jobs.next(timeout=0) for _ in range(count)]
    return [job.work() for job in found if job is not None]


def test_callers_take_turns_however_much_each_has_asked_for() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "a", "a", "b", "a", "b", "c"):
        assert order(jobs, 7) == ["a 0", "b 3", "c 6", "a 1", "b 5", "a 2", "a 4"]


def test_every_second_turn_is_the_guests() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "b", "a", GUEST, GUEST):
        assert order(jobs, 5) == ["guest 3", "a 0", "guest 4", "b 1", "a 2"]


def test_guests_that_never_pause_leave_callers_their_turns() -> None:
    jobs = Jobs()
    with waiting(jobs, GUEST, GUEST, GUEST, "a"):
        assert order(jobs, 4) == ["guest 0", "a 3", "guest 1", "guest 2"]


def test_the_end_comes_after_all_that_waits() -> None:
    jobs = Jobs()
    jobs.end()
    with waiting(jobs, "a", GUEST):
        assert order(jobs, 2) == ["guest 1", "a 0"]
    assert jobs.next(timeout=0) is None


def test_when_nothing_comes_in_time_it_is_empty() -> None:
    with pytest.raises(queue.Empty):
        Jobs().next(timeout=0)
