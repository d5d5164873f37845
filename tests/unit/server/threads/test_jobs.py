"""Jobs: guests wait for at most one other job, and callers for at most one job of each other caller."""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from forewarn.control.use_case import ExclusiveJob
from forewarn.core.errors import Unavailable, Uncertain
from forewarn.server.threads import jobs as threads_jobs
from forewarn.server.threads.jobs import GUESTS_ACTIVE, LONGEST_WAIT, FollowUp, Job, Jobs, Turn
from forewarn.store.batch import Transaction
from tests.helpers.service.racing import at_once

GUEST, OWN = "guest", "own"


@contextmanager
def waiting(jobs: Jobs, *whose: str) -> Iterator[None]:
    """Queue jobs that return the name of their caller."""

    def job(who: str, number: int) -> Awaitable[str]:
        run: Callable[[Callable[[Transaction], str]], Awaitable[str]]
        if who == GUEST:
            run = partial(jobs.run, Turn.GUESTS, "a")
        else:
            run = jobs.run_own if who == OWN else jobs.run_for(who)
        return run(lambda _: f"{who} {number}")

    with asyncio.Runner() as runner:

        async def submit() -> list[asyncio.Future[str]]:
            asked: list[asyncio.Future[str]] = []
            asked += [asyncio.ensure_future(job(who, number)) for number, who in enumerate(whose)]
            await asyncio.sleep(0)
            return asked

        runner.run(submit())
        yield


def answer(job: Job) -> str:
    """Run a job without a transaction, which these jobs do not use."""
    given: Any = None
    work: Callable[[Any], str] = job.work.work if isinstance(job.work, ExclusiveJob) else job.work
    return work(given)


def order(jobs: Jobs, count: int) -> list[str]:
    return [answer(job) for _ in range(count) for job in jobs.take(1, timeout=0)]


def together(jobs: Jobs, most: int) -> list[str]:
    return [answer(job) for job in jobs.take(most, timeout=0)]


def test_callers_take_turns_whatever_the_length_of_their_queues() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "a", "a", "b", "a", "b", "c"):
        assert order(jobs, 7) == ["a 0", "b 3", "c 6", "a 1", "b 5", "a 2", "a 4"]


def test_guests_have_every_second_turn() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "b", "a", GUEST, GUEST):
        assert order(jobs, 5) == ["guest 3", "a 0", "guest 4", "b 1", "a 2"]


def test_guests_without_a_pause_leave_turns_to_callers() -> None:
    jobs = Jobs()
    with waiting(jobs, GUEST, GUEST, GUEST, "a"):
        assert order(jobs, 4) == ["guest 0", "a 3", "guest 1", "guest 2"]


def test_the_servers_own_jobs_take_turns_with_guests_and_callers() -> None:
    jobs = Jobs()
    with waiting(jobs, OWN, OWN, "a", "a", GUEST, GUEST):
        assert order(jobs, 6) == ["guest 4", "own 0", "a 2", "guest 5", "own 1", "a 3"]


def test_guests_of_different_projects_take_turns() -> None:
    jobs = Jobs()

    async def ask() -> None:
        for number, project in enumerate(["a", "a", "a", "b"]):
            asked.append(asyncio.ensure_future(ask_for(number, project)))
        await asyncio.sleep(0)

    def ask_for(number: int, project: str) -> Awaitable[str]:
        return jobs.run(Turn.GUESTS, project, lambda _: str(number))

    asked: list[asyncio.Future[str]] = []
    with asyncio.Runner() as runner:
        runner.run(ask())
        assert order(jobs, 4) == ["0", "3", "1", "2"]


def test_returned_jobs_keep_their_position_and_a_guest_comes_before_them() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "b", "a"):
        taken = jobs.take(9, timeout=0)
        with waiting(jobs, GUEST, "b"):
            assert jobs.guest_waits
            jobs.put_back(taken[1:], after=taken[0])
            assert order(jobs, 4) == ["guest 0", "b 1", "a 2", "b 1"]
    assert not jobs.guest_waits


def test_after_a_guests_job_the_returned_jobs_have_their_turn() -> None:
    jobs = Jobs()
    with waiting(jobs, GUEST, "a"):
        taken = jobs.take(9, timeout=0)
        with waiting(jobs, GUEST):
            jobs.put_back(taken[1:], after=taken[0])
            assert order(jobs, 2) == ["a 1", "guest 0"]


def test_the_end_comes_after_all_queued_jobs() -> None:
    jobs = Jobs()
    jobs.end()
    with waiting(jobs, "a", GUEST):
        assert order(jobs, 2) == ["guest 1", "a 0"]
    assert jobs.take(1, timeout=0) == []


def test_taking_from_empty_queues_times_out() -> None:
    with pytest.raises(queue.Empty):
        Jobs().take(1, timeout=0)


def test_queued_jobs_are_taken_together_in_order() -> None:
    jobs = Jobs()
    with waiting(jobs, "a", "a", OWN, "b"):
        assert together(jobs, 3) == ["own 2", "a 0", "b 3"]
        assert together(jobs, 3) == ["a 1"]
    assert not jobs.waiting


def test_while_guests_call_their_jobs_share_a_batch_and_other_jobs_do_not() -> None:
    now = 0.0
    jobs = Jobs(monotonic=lambda: now)
    with waiting(jobs, "a", GUEST, "b", GUEST, "c", "d"):
        assert together(jobs, 9) == ["guest 1", "guest 3"]
        assert together(jobs, 9) == ["a 0"]
        now = GUESTS_ACTIVE
        assert together(jobs, 9) == ["b 2", "c 4", "d 5"]


def test_a_job_marked_alone_is_taken_alone_in_its_turn() -> None:
    jobs = Jobs()
    jobs.post(lambda _: "before")
    jobs.post(ExclusiveJob(lambda _: "alone"))
    jobs.post(lambda _: "after")
    assert [together(jobs, 9) for _ in range(3)] == [["before"], ["alone"], ["after"]]


class SlowDatabase:
    """How long the worker has waited for the database."""

    waited = 0.0

    def __call__(self, _thread: int) -> float:
        return self.waited


@pytest.fixture(autouse=True)
def looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_jobs, "LOOK_EVERY", 0)


async def given_up(jobs: Jobs, slow: SlowDatabase, *, under_way: bool) -> Unavailable:
    """Submit a job while the database is slow; return the error."""
    asked = asyncio.ensure_future(jobs.run_for("a")(lambda _: "done"))
    await asyncio.sleep(0)
    if under_way:
        jobs.take(1, timeout=0)
    slow.waited += LONGEST_WAIT + 0.1
    with pytest.raises(Unavailable) as refused:
        await asked
    return refused.value


def test_a_job_that_waits_too_long_for_the_database_is_withdrawn_and_never_runs() -> None:
    slow = SlowDatabase()
    jobs = Jobs(waited=slow)
    refused = asyncio.run(given_up(jobs, slow, under_way=False))
    assert type(refused) is Unavailable
    assert "nothing was done" in str(refused)
    with pytest.raises(queue.Empty):
        jobs.take(1, timeout=0)


def test_calls_fail_fast_while_the_worker_is_stuck() -> None:
    slow = SlowDatabase()
    jobs, slow.waited = Jobs(waiting=slow), LONGEST_WAIT + 0.1
    with pytest.raises(Unavailable, match="nothing was done"):
        asyncio.run(jobs.run_for("a")(lambda _: "done"))
    assert not jobs.waiting


def test_a_running_job_that_takes_too_long_is_uncertain() -> None:
    slow = SlowDatabase()
    jobs = Jobs(waited=slow)
    refused = asyncio.run(given_up(jobs, slow, under_way=True))
    assert type(refused) is Uncertain
    assert "same Idempotency-Key" in str(refused)


def test_a_job_that_was_taken_and_returned_can_be_withdrawn() -> None:
    slow = SlowDatabase()
    jobs = Jobs(waited=slow)

    async def refused() -> Unavailable:
        asked = asyncio.ensure_future(jobs.run_for("a")(ExclusiveJob(lambda _: "done")))
        await asyncio.sleep(0)
        jobs.post(lambda _: "before")
        assert together(jobs, 2) == ["before"]
        slow.waited += LONGEST_WAIT + 0.1
        with pytest.raises(Unavailable) as refused:
            await asked
        return refused.value

    assert type(asyncio.run(refused())) is Unavailable
    assert not jobs.waiting


def test_a_job_that_the_worker_takes_just_before_its_withdrawal_is_uncertain() -> None:
    taken = list[Job]()

    def waited(_thread: int) -> float:
        """Report too long a wait, and let the worker take the job before the caller continues."""
        if not jobs.waiting:
            return 0.0
        worker = threading.Thread(target=lambda: taken.extend(jobs.take(1, timeout=0)))
        worker.start()
        worker.join()
        return LONGEST_WAIT + 0.1

    jobs = Jobs(waited=waited)
    with pytest.raises(Uncertain):
        asyncio.run(jobs.run_for("a")(lambda _: "done"))
    assert [answer(job) for job in taken] == ["done"]


def test_each_job_is_taken_once_or_refused_whenever_the_worker_ends() -> None:
    for _ in range(20):
        jobs, taken = Jobs(), list[Job]()

        def work(jobs: Jobs = jobs, taken: list[Job] = taken) -> None:
            for _ in range(5):
                taken += jobs.take(1, timeout=60)
            jobs.abandon()

        posted = [lambda jobs=jobs: jobs.post(lambda _: "done")] * 8  # type: ignore[misc]
        *answers, _ = at_once([*posted, work])
        refused = [each for each in answers if each is not None and each.done()]
        assert len(taken) == 5
        assert len(refused) == 3
        assert not {id(each) for each in refused} & {id(job.answer) for job in taken}
        assert all(isinstance(each.exception(), Unavailable) for each in refused)
        assert not jobs.waiting


# Readers wait for the tick that their own calls have made due

FOREVER = 1e6


def reading(follow_up: FollowUp) -> threading.Thread:
    """Wait on a thread, as a reader does."""
    reader = threading.Thread(target=follow_up.wait, daemon=True)
    reader.start()
    return reader


def test_a_reader_does_not_wait_if_no_tick_is_owed() -> None:
    FollowUp(longest_wait=FOREVER).wait()


def test_a_reader_waits_for_the_next_tick() -> None:
    follow_up = FollowUp(longest_wait=FOREVER)
    follow_up.owe()
    reader = reading(follow_up)
    reader.join(0.05)
    assert reader.is_alive()
    follow_up.ticked()
    reader.join(60)
    assert not reader.is_alive()


def test_no_reader_waits_after_the_tick() -> None:
    follow_up = FollowUp(longest_wait=FOREVER)
    follow_up.owe()
    follow_up.ticked()
    follow_up.wait()


def test_the_wait_for_a_tick_times_out() -> None:
    follow_up = FollowUp(longest_wait=0.01)
    follow_up.owe()
    follow_up.wait()
