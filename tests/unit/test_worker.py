"""A caller is answered when what it asked for is saved and shown, and not before (rule 7)."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from math import inf
from typing import Any

import pytest

from forewarn.control.engine.engine import Stuck
from forewarn.server.threads import worker
from forewarn.server.threads.bridge import WorkerCommands
from forewarn.server.threads.follow_up import FollowUp
from forewarn.server.threads.jobs import Job, Jobs
from forewarn.server.threads.worker import Worker
from tests.unit.slices import NOON

# So often the loop goes round while a guest waits: far more than an answer needs.
ROUNDS = 20


class Saved:
    """The use cases of guests: remembers what it has saved."""

    def __init__(self) -> None:
        self.saved: list[str] = []

    def enable(self, *groups: str) -> tuple[str, ...]:
        self.saved.append("enable")
        return groups

    def approve(self, *_: object, address: str) -> None:
        self.saved.append("approve")

    def defer(self, *_: object) -> None:
        self.saved.append("defer")


@pytest.mark.parametrize(
    ("what", "given", "named"),
    [
        ("enable", ("web",), {}),
        ("approve", ("web-0", ["E"]), {"address": "10.0.0.1"}),
        ("defer", ("web-0", {"E": 60}), {"address": "10.0.0.1"}),
    ],
)
def test_a_guest_waits_until_the_worker_has_saved_its_word(
    what: str, given: tuple[object, ...], named: dict[str, str]
) -> None:
    async def ask() -> None:
        jobs, guests = Jobs(), Saved()
        commands = WorkerCommands(guests, jobs)  # type: ignore[arg-type]
        waiting = asyncio.ensure_future(getattr(commands, what)(*given, **named))
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert not waiting.done()
        (job,) = jobs.take(9, timeout=0)
        job.answer.set_result(job.work())
        await waiting
        assert guests.saved == [what]

    asyncio.run(ask())


class FewJobs:
    """Jobs that come to an end."""

    def __init__(self, *jobs: Job) -> None:
        self._left = [[*jobs], []]
        self.follow_up = FollowUp()

    def take(self, most: int, *, timeout: float) -> list[Job]:
        return self._left.pop(0)

    waiting = False

    def end(self) -> None:
        pass


class Around:
    """All that a worker works with: writes down when boards are brought up to date."""

    speed = 1.0
    at = None

    def __init__(self, answer: "Future[Any]", seen: list[str]) -> None:
        self._answer = answer
        self._seen = seen
        self.clock = self.due = self

    @contextmanager
    def together(self) -> Iterator["Around"]:
        yield self

    def part(self) -> AbstractContextManager[None]:
        return nullcontext()

    def catch_up(self) -> None:
        self._seen.append("shown after the answer" if self._answer.done() else "shown")

    def look(self) -> datetime:
        return NOON

    def now(self) -> datetime:
        return NOON

    def tick(self, now: datetime, *, give_way: object, few: bool) -> bool:
        return False

    def may_be_due(self, now: datetime) -> bool:
        return False

    def known_due(self, now: datetime) -> datetime | None:
        return now + timedelta(hours=1)

    def prove_present(self, now: datetime) -> int:
        return 0

    def look_for(self, number: int) -> None:
        pass

    def prune(self) -> bool:
        return False

    def save_all(self, now: datetime) -> None:
        pass


def test_an_operator_is_answered_when_it_is_saved_and_guests_are_shown_it() -> None:
    answer: Future[str] = Future()
    seen: list[str] = []

    def save() -> str:
        seen.clear()  # what a tick has shown before
        seen.append("saved")
        return "done"

    around: Any = Around(answer, seen)
    jobs: Any = FewJobs(Job(save, answer))
    worker = Worker(jobs, store=around, engine=around, answering=around, feed=around, time=around)
    worker.start()
    worker.stop()
    assert (seen[:2], answer.result(timeout=0)) == (["saved", "shown"], "done")


def test_a_job_that_fails_is_answered_with_its_error() -> None:
    answer: Future[str] = Future()
    around: Any = Around(answer, [])
    fault = ValueError("it cannot be")

    def fail() -> str:
        raise fault

    jobs: Any = FewJobs(Job(fail, answer))
    worker = Worker(jobs, store=around, engine=around, answering=around, feed=around, time=around)
    worker.start()
    worker.stop()
    assert answer.exception(timeout=0) is fault


def test_guests_are_shown_what_a_tick_has_saved_though_some_orders_cannot_go_on() -> None:
    seen: list[str] = []

    class Stumbling(Around):
        def tick(self, now: datetime, *, give_way: object, few: bool) -> bool:
            seen.append("saved")
            raise Stuck("order ORDER cannot go on")

    around: Any = Stumbling(Future(), seen)
    jobs: Any = FewJobs(Job(lambda: seen.append("a job"), Future()))
    worker = Worker(jobs, store=around, engine=around, answering=around, feed=around, time=around)
    worker.start()
    worker.stop()
    assert seen[:3] == ["saved", "shown", "a job"]


class AlwaysDue(Around):
    """An engine that always has something to do: writes down when it does it."""

    def tick(self, now: datetime, *, give_way: object, few: bool) -> bool:
        self._seen.append("tick")
        return False

    def may_be_due(self, now: datetime) -> bool:
        return True

    def catch_up(self) -> None:
        pass


@pytest.mark.parametrize(
    ("longest", "done"),
    [(inf, ["tick", "job", "job", "tick"]), (-inf, ["tick", "job", "tick", "job", "tick"])],
)
def test_jobs_that_have_waited_together_come_before_a_tick_but_not_for_long(
    longest: float, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_BATCH", -inf)  # each is saved by itself
    monkeypatch.setattr(worker, "LONGEST_WITHOUT_TICK", longest)
    seen: list[str] = []
    jobs: Any = FewJobs(*(Job(lambda: seen.append("job"), Future()) for _ in range(2)))
    around: Any = AlwaysDue(Future(), seen)
    mine = Worker(jobs, store=around, engine=around, answering=around, feed=around, time=around)
    mine.start()
    mine.stop()
    assert seen == done
