"""A caller is answered only when its changes are saved and shown (rule 7)."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Any

import pytest

from forewarn.control.engine.engine import Stuck
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.errors import ForewarnError, Invalid, Unavailable, Uncertain
from forewarn.server.threads import worker
from forewarn.server.threads.batches import Batches
from forewarn.server.threads.bridge import MOST_APPROVED, WorkerCommands
from forewarn.server.threads.jobs import FollowUp, Job, Jobs, Turn
from forewarn.server.threads.worker import MOST_TOGETHER, Worker
from forewarn.supervision import RestartPace, Supervisor
from tests.helpers.programs.process import PATIENCE
from tests.helpers.service.racing import at_once
from tests.unit.slices import NOON

# Iterations of the loop while a guest waits: far more than an answer needs.
ROUNDS = 20


class Saved:
    """The use cases of guests, with a list of what they have saved."""

    def __init__(self) -> None:
        self.saved: list[str] = []

    def enable(self, _tx: object, *groups: str) -> tuple[str, ...]:
        self.saved.append("enable")
        return groups

    def approve(self, *_: object, address: str) -> None:
        self.saved.append("approve")

    def defer(self, *_: object) -> None:
        self.saved.append("defer")


def done_by(job: Job) -> object:
    """Run a job like the worker, without a transaction, which these use cases do not use."""
    tx: Any = None
    assert not isinstance(job.work, ExclusiveJob)
    return job.work(tx)


@pytest.mark.parametrize(
    ("what", "given", "named"),
    [
        ("enable", ("web",), {}),
        ("approve", ("web-0", ["E"]), {"address": "10.0.0.1"}),
        ("defer", ("web-0", {"E": 60}), {"address": "10.0.0.1"}),
    ],
)
def test_a_guest_waits_until_the_worker_has_saved_its_command(
    what: str, given: tuple[object, ...], named: dict[str, str]
) -> None:
    async def ask() -> None:
        jobs, guests = Jobs(), Saved()
        commands = WorkerCommands(guests, jobs, members={})  # type: ignore[arg-type]
        waiting = asyncio.ensure_future(getattr(commands, what)(*given, **named))
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert not waiting.done()
        (job,) = jobs.take(9, timeout=0)
        job.answer.set_result(done_by(job))
        await waiting
        assert guests.saved == [what]

    asyncio.run(ask())


def test_each_group_is_enabled_while_the_worker_takes_jobs() -> None:
    jobs, guests = Jobs(), Saved()
    commands = WorkerCommands(guests, jobs, members={})  # type: ignore[arg-type]
    names = [f"group-{number}" for number in range(100)]

    def work() -> None:
        while taken := jobs.take(9, timeout=60):
            for job in taken:
                job.answer.set_result(done_by(job))

    async def ask() -> None:
        asked = []
        for name in names:
            asked.append(asyncio.ensure_future(commands.enable(name)))  # type: ignore[arg-type]
            await asyncio.sleep(0)
        await asyncio.gather(*asked)  # a group that was added too late would not be enabled and not be found
        jobs.end()

    at_once([work, partial(asyncio.run, ask())])
    assert guests.saved


class ManyEvents(Saved):
    """The use cases of a guest with many events; a job in the middle may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.approved: list[str] = []

    def listed(self, _tx: object, _machine: str, events: Sequence[str]) -> Sequence[str]:
        if "unknown" in events:
            raise Invalid("event unknown is not known")
        return events

    def approve(self, *given: object, address: str) -> None:
        _tx, _machine, events = given
        self.approved += events  # type: ignore[arg-type]


MANY = [f"E{number}" for number in range(2 * MOST_APPROVED + 1)]


async def approving(
    guests: ManyEvents, events: Sequence[str], *, failing: int | None = None
) -> tuple[int, BaseException | None]:
    """Approve events; return the number of jobs and the error of a job that fails."""
    jobs = Jobs()
    commands = WorkerCommands(guests, jobs, members={})  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(commands.approve("web-0", events, address="10.0.0.1"))  # type: ignore[arg-type]
    done = 0
    while not waiting.done():
        await asyncio.sleep(0)
        if not jobs.waiting:
            continue
        (job,) = jobs.take(9, timeout=0)  # never more than one job is queued
        try:
            if done == failing:
                raise Unavailable("the database is away; nothing was done by this call")
            job.answer.set_result(done_by(job))
        except ForewarnError as error:
            job.answer.set_exception(error)
        done += 1
    return done, waiting.exception()


def test_a_guest_that_approves_many_events_takes_several_turns() -> None:
    guests = ManyEvents()
    assert asyncio.run(approving(guests, MANY)) == (1 + 3, None)
    assert guests.approved == MANY


def test_no_event_is_approved_if_one_of_many_is_unknown() -> None:
    guests = ManyEvents()
    done, error = asyncio.run(approving(guests, [*MANY, "unknown"]))
    assert (done, str(error)) == (1, "event unknown is not known")
    assert guests.approved == []


@pytest.mark.parametrize(("failing", "kind"), [(1, Unavailable), (2, Uncertain)])
def test_a_failure_after_some_of_many_approvals_is_uncertain(failing: int, kind: type[Unavailable]) -> None:
    guests = ManyEvents()
    _, error = asyncio.run(approving(guests, MANY, failing=failing))
    assert type(error) is kind
    assert len(guests.approved) == (failing - 1) * MOST_APPROVED


class FewJobs:
    """Jobs that end after the given ones."""

    def __init__(self, *jobs: Job) -> None:
        self._left = [[*jobs], []]
        self.follow_up = FollowUp()

    def take(self, most: int, *, timeout: float) -> list[Job]:
        return self._left.pop(0)

    def put_back(self, jobs: list[Job], *, after: Job) -> None:
        self._left.insert(0, jobs)

    waiting = guest_waits = False

    def end(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class Around:
    """All dependencies of a worker; records when boards are updated."""

    speed = 1.0
    at = None

    def __init__(self, answer: "Future[Any]", seen: list[str]) -> None:
        self._answer = answer
        self._seen = seen
        self.clock = self.due = self

    @contextmanager
    def batch(self) -> Iterator["Around"]:
        yield self

    def savepoint(self) -> AbstractContextManager["Around"]:
        return nullcontext(self)

    def catch_up(self) -> None:
        self._seen.append("shown after the answer" if self._answer.done() else "shown")

    def look(self) -> datetime:
        return NOON

    def now(self) -> datetime:
        return NOON

    def tick(self, now: datetime, *, should_yield: object, few: bool) -> bool:
        return False

    def may_be_due(self, now: datetime) -> bool:
        return False

    def known_due(self, now: datetime) -> datetime | None:
        return now + timedelta(hours=1)

    def ahead(self) -> timedelta:
        return timedelta()

    def save_presence(self, now: datetime, *, ahead: timedelta) -> int:
        return 0

    def read_up_to(self, number: int) -> None:
        pass

    def prune(self, _transact: object) -> bool:
        return False

    def save_all(self, now: datetime, *, ahead: timedelta) -> None:
        pass


def worker_on(jobs: Any, around: Any) -> Worker:
    return Worker(jobs, batches=Batches(around), engine=around, answering=around, feed=around, time=around)


def test_an_operator_is_answered_after_the_commit_and_the_update_of_boards() -> None:
    answer: Future[str] = Future()
    seen: list[str] = []

    def save(_tx: object) -> str:
        seen.clear()  # from the first tick
        seen.append("saved")
        return "done"

    around: Any = Around(answer, seen)
    jobs: Any = FewJobs(Job(save, answer))
    worker = worker_on(jobs, around)
    worker.start(Supervisor())
    worker.stop()
    assert (seen[:2], answer.result(timeout=0)) == (["saved", "shown"], "done")


def test_a_job_that_fails_is_answered_with_its_error() -> None:
    answer: Future[str] = Future()
    around: Any = Around(answer, [])
    fault = ValueError("it cannot be")

    def fail(_tx: object) -> str:
        raise fault

    jobs: Any = FewJobs(Job(fail, answer))
    worker = worker_on(jobs, around)
    worker.start(Supervisor())
    worker.stop()
    assert answer.exception(timeout=0) is fault


class BrokenFollowUp(FollowUp):
    """Raises once, after the jobs of the worker."""

    is_broken = True

    def ticked(self) -> None:
        if self.is_broken:
            self.is_broken = False
            raise SystemExit("injected")
        super().ticked()


def test_a_worker_that_fails_continues_and_answers_the_jobs_it_had_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    around: Any = Around(Future(), [])
    jobs = Jobs()
    jobs.follow_up = BrokenFollowUp()
    supervisor = Supervisor(pace=RestartPace(first=0))
    worker = worker_on(jobs, around)
    first = jobs.post(lambda _: "one")
    worker.start(supervisor)
    assert first.result(timeout=PATIENCE) == "one"
    assert jobs.post(lambda _: "two").result(timeout=PATIENCE) == "two"
    worker.stop()
    assert supervisor.restarts()["worker"] == 1
    assert "background task worker failed" in caplog.text


def test_jobs_that_a_failing_worker_had_taken_are_uncertain() -> None:
    class Breaking(Around):
        def may_be_due(self, now: datetime) -> bool:
            raise SystemExit("injected")  # between the commit and the answer

    around: Any = Breaking(Future(), [])
    answer: Future[str] = Future()
    jobs: Any = FewJobs(Job(lambda _: "done", answer))
    worker = worker_on(jobs, around)
    worker.start(Supervisor())
    worker.stop()
    assert isinstance(answer.exception(timeout=0), Uncertain)


def test_a_worker_that_has_ended_leaves_no_caller_waiting() -> None:
    class Broken(Jobs):
        def take(self, most: int, *, timeout: float) -> list[Job]:
            raise SystemExit("injected")

    around: Any = Around(Future(), [])
    jobs = Broken()
    supervisor = Supervisor()
    worker = worker_on(jobs, around)
    before = [jobs.post(lambda _: None), jobs.post(lambda _: None)]
    supervisor.stop()
    worker.start(supervisor)
    worker.stop()
    assert not worker.alive
    for answer in (*before, jobs.post(lambda _: None)):
        assert isinstance(answer.exception(timeout=0), Unavailable)


def test_boards_are_updated_after_a_tick_with_stuck_orders() -> None:
    seen: list[str] = []

    class Stumbling(Around):
        def tick(self, now: datetime, *, should_yield: object, few: bool) -> bool:
            seen.append("saved")
            raise Stuck("order ORDER cannot go on")

    around: Any = Stumbling(Future(), seen)
    jobs: Any = FewJobs(Job(lambda _: seen.append("a job"), Future()))
    worker = worker_on(jobs, around)
    worker.start(Supervisor())
    worker.stop()
    assert seen[:3] == ["saved", "shown", "a job"]


class BatchesApart(Around):
    """Records what each batch saves."""

    def __init__(self) -> None:
        super().__init__(Future(), [])
        self.saved: list[list[str]] = []

    @contextmanager
    def batch(self) -> Iterator["BatchesApart"]:
        self.saved.append([])
        yield self

    def save(self, what: str, _tx: object = None) -> None:
        self.saved[-1].append(what)


def saved_with_a_guest_among(callers: int, *, before: bool) -> list[list[str]]:
    """Queue jobs of callers, and add a guest's job before them or during the first."""
    jobs, around = Jobs(monotonic=lambda: 0.0), BatchesApart()
    under_way, arrived = threading.Event(), threading.Event()
    worker = worker_on(jobs, around)

    def work(number: int, _tx: object) -> None:
        if number == 0:
            under_way.set()
            arrived.wait()
        around.save(f"caller {number}")

    async def ask() -> None:
        guest = partial(jobs.run, Turn.GUESTS, "a", partial(around.save, "guest"))
        asked = [asyncio.ensure_future(jobs.run_for("b")(partial(work, number))) for number in range(callers)]
        asked += [asyncio.ensure_future(guest())] if before else []
        await asyncio.sleep(0)
        worker.start(Supervisor())
        await asyncio.to_thread(under_way.wait)
        asked += [] if before else [asyncio.ensure_future(guest())]
        await asyncio.sleep(0)
        arrived.set()
        await asyncio.gather(*asked)

    asyncio.run(ask())
    worker.stop()
    return around.saved


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LONGEST_BATCH", "LONGEST_WITHOUT_TICK"):
        monkeypatch.setattr(worker, name, inf)


@pytest.mark.usefixtures("no_hurry")
def test_a_guest_that_calls_during_a_batch_waits_only_for_the_running_job() -> None:
    saved = saved_with_a_guest_among(MOST_TOGETHER, before=False)
    assert saved[:2] == [["caller 0"], ["guest"]]
    assert {len(batch) for batch in saved} == {1}


@pytest.mark.usefixtures("no_hurry")
def test_a_guests_job_is_saved_before_later_jobs_of_callers() -> None:
    saved = saved_with_a_guest_among(MOST_TOGETHER, before=True)
    assert saved[0] == ["guest"]
    assert {len(batch) for batch in saved} == {1}


class AlwaysDue(Around):
    """An engine that always has work; records its ticks."""

    def tick(self, now: datetime, *, should_yield: object, few: bool) -> bool:
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
def test_jobs_queued_together_run_before_a_tick_for_a_limited_time(
    longest: float, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_BATCH", -inf)  # each batch has one job
    monkeypatch.setattr(worker, "LONGEST_WITHOUT_TICK", longest)
    seen: list[str] = []
    jobs: Any = FewJobs(*(Job(lambda _: seen.append("job"), Future()) for _ in range(2)))
    around: Any = AlwaysDue(Future(), seen)
    mine = worker_on(jobs, around)
    mine.start(Supervisor())
    mine.stop()
    assert seen == done
