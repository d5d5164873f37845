"""The queue of use cases that wait for the worker."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from queue import Empty
from typing import Any, TypeVar

from forewarn.api.services import RunUseCase
from forewarn.clock import monotonic
from forewarn.control.use_case import ExclusiveJob, PrefetchingUseCase
from forewarn.core.errors import RETRY_ADVICE, Unavailable, Uncertain
from forewarn.server.threads.fair_queue import FairQueue
from forewarn.store.batch import Transaction
from forewarn.store.prefetch import Prefetch

T = TypeVar("T")

# How long a caller waits for a slow database, in seconds. Every caller is answered within six seconds, and
# authentication may take one of them. The store usually times out earlier. This limit is for a database that
# answers from time to time, or whose connections hang while it works.
LONGEST_WAIT = 4.5
LOOK_EVERY = 0.25
# While guests send commands at least this often, in seconds, other jobs are committed one at a time. A guest
# then waits for one job instead of a batch: 2.5 times its idle latency instead of 4 times
# (`bench --only tenants`).
GUESTS_ACTIVE = 0.1
# A tick takes some milliseconds. If the database does not answer, or much is due, readers do not wait.
LONGEST_FOLLOW_UP = 0.25


class Turn(IntEnum):
    """The queues, in the order in which they take turns."""

    GUESTS = 0
    OWN = 1  # the server itself, such as answers of drivers
    CALLERS = 2  # the operator API


@dataclass(frozen=True, slots=True)
class Job:
    """A use case and the future that its caller waits for."""

    work: Callable[[Transaction], Any] | ExclusiveJob[Any]
    answer: "Future[Any]"
    turn: Turn = Turn.CALLERS
    who: str = ""  # the caller; the callers of a queue take turns, too

    @property
    def alone(self) -> bool:
        """Whether it must not share a batch with other jobs."""
        return isinstance(self.work, ExclusiveJob)

    @property
    def prefetch(self) -> Prefetch | None:
        """The rows that the use case is known to read, so that the batch can load them together."""
        return self.work.prefetch if isinstance(self.work, PrefetchingUseCase) else None


class FollowUp:
    """Whether a tick is owed for answered jobs. Readers wait for that tick, for a short time at most.

    Example: the tick after the release of a hold starts the held work. A caller that releases the hold and
    then reads should see the work started. The worker writes this; reading threads wait.
    """

    def __init__(self, *, longest_wait: float = LONGEST_FOLLOW_UP) -> None:
        self._longest_wait = longest_wait
        self._news = threading.Condition()
        self._owed = False  # lock: self._news
        self._ticks = 0  # lock: self._news

    def owe(self) -> None:
        """Note that the answered jobs may have made work due."""
        with self._news:
            self._owed = True

    def ticked(self) -> None:
        """Note the end of a tick, successful or not."""
        with self._news:
            self._owed = False
            self._ticks += 1
            self._news.notify_all()

    def wait(self) -> None:
        """Wait for the end of the next tick, if one is owed."""
        with self._news:
            if self._owed:
                before = self._ticks
                self._news.wait_for(lambda: self._ticks != before, self._longest_wait)


def _no_wait(_thread: int) -> float:
    return 0.0


class Jobs:
    """The jobs that wait for the worker.

    Guests, the server itself and the callers of the operator API take turns. Within these queues the projects
    of the guests, and the callers, take turns as well.
    """

    def __init__(
        self,
        *,
        waited: Callable[[int], float] = _no_wait,
        waiting: Callable[[int], float] = _no_wait,
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Take functions that return how many seconds a thread has waited for the database.

        `waited` counts all slow statements of the thread; `waiting` only the current statement.
        """
        self._waited = waited
        self._waiting = waiting
        self._monotonic = monotonic
        self._worker = 0  # the id of the thread that takes jobs, which sets it
        self._news = threading.Condition()
        # Lock: self._news; any thread may check without it whether a queue is empty.
        self._queues: dict[Turn, FairQueue[str, Job]] = {turn: FairQueue() for turn in Turn}
        self._last = Turn.CALLERS  # whose turn it was last; lock: self._news
        self._guest_came_at = monotonic() - GUESTS_ACTIVE  # lock: self._news
        self._ended = False  # lock: self._news
        self._is_abandoned = False  # lock: self._news
        self.follow_up = FollowUp()

    async def run(self, turn: Turn, caller: str, work: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        """Run a use case on the worker; return its result when the boards show what it changed."""
        if self._waiting(self._worker) > LONGEST_WAIT:
            raise _too_slow()  # fail fast: the worker is stuck
        before, answer = self._waited(self._worker), self._put(turn, caller, work)
        answered = asyncio.wrap_future(answer)
        while not (await asyncio.wait([answered], timeout=LOOK_EVERY))[0]:
            if self._waited(self._worker) - before > LONGEST_WAIT:
                answered.add_done_callback(_ignore_error)
                raise self._give_up(answer)
        return answered.result()

    async def run_own(self, work: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        """Run a use case of the server itself."""
        return await self.run(Turn.OWN, "", work)

    def run_for(self, caller: str) -> RunUseCase:
        """Return a function that runs use cases of a caller of the operator API."""
        return partial(self.run, Turn.CALLERS, caller)

    def post(self, work: Callable[[Transaction], T] | ExclusiveJob[T]) -> "Future[T]":
        """Queue a use case of the server itself; return its future without waiting."""
        return self._put(Turn.OWN, "", work)

    @property
    def waiting(self) -> bool:
        """Whether there is a job to do. Thread-safe."""
        return self._any()

    @property
    def guest_waits(self) -> bool:
        """Whether a guest's job waits. Thread-safe."""
        return bool(self._queues[Turn.GUESTS])

    def end(self) -> None:
        """Let the worker end after it has done the jobs that are queued."""
        with self._news:
            self._ended = True
            self._news.notify()

    def abandon(self) -> None:
        """Refuse all queued and future jobs: the worker has ended."""
        with self._news:
            self._is_abandoned = True
            waiting = [job for queue in self._queues.values() for job in queue.clear()]
        for job in waiting:
            job.answer.set_exception(_stopping())

    def take(self, most: int, *, timeout: float) -> list[Job]:
        """Return the jobs of the next batch, in the order of their turns; an empty list after `end`.

        A batch has jobs of guests or other jobs, not both: reading for other jobs would delay the guests.
        Raise `queue.Empty` if no job comes in time.
        """
        self._worker = threading.get_ident()
        with self._news:
            if not self._news.wait_for(self._any, timeout):
                raise Empty
            taken: list[Job] = []
            guests_active = self._monotonic() - self._guest_came_at < GUESTS_ACTIVE
            while len(taken) < most and (job := self._next(after=taken)) is not None:
                if guests_active and job.turn is not Turn.GUESTS:
                    most = 1
                if job.alone and taken:
                    self._return([job], after=taken[-1])
                    break
                taken.append(job)
                if job.alone:
                    break
            return taken

    def put_back(self, jobs: Sequence[Job], *, after: Job) -> None:
        """Return jobs to the queues that were taken and not done; `after` is the last job that was done."""
        with self._news:
            self._return(jobs, after=after)

    def _return(self, jobs: Sequence[Job], *, after: Job) -> None:
        for job in reversed(jobs):
            self._queues[job.turn].put_back(job.who, job)
        self._last = after.turn

    def _next(self, *, after: Sequence[Job]) -> Job | None:
        """Take the next job that may share a batch with the jobs taken before."""
        for way in range(1, len(Turn) + 1):
            turn = Turn((self._last + way) % len(Turn))
            if after and (turn is Turn.GUESTS) != (after[0].turn is Turn.GUESTS):
                continue
            if (job := self._queues[turn].take()) is not None:
                self._last = turn
                return job
        return None

    def _give_up(self, answer: "Future[Any]") -> Unavailable:
        """Withdraw a job from the queue; return the error for its caller."""
        with self._news:
            withdrawn = [queue.withdraw(lambda job: job.answer is answer) for queue in self._queues.values()]
        if any(withdrawn):
            return _too_slow()
        return Uncertain(f"the database is too slow to answer; {RETRY_ADVICE}")

    def _put(self, turn: Turn, who: str, work: Callable[[Transaction], T] | ExclusiveJob[T]) -> "Future[T]":
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        with self._news:
            if self._is_abandoned:
                answer.set_exception(_stopping())
                return answer
            if turn is Turn.GUESTS:
                self._guest_came_at = self._monotonic()
            self._queues[turn].put(who, Job(work, answer, turn, who))
            self._news.notify()
        return answer

    def _any(self) -> bool:
        return self._ended or any(self._queues.values())


def _too_slow() -> Unavailable:
    return Unavailable("the database is too slow to answer; nothing was done by this call")


def _stopping() -> Unavailable:
    return Unavailable("stopping; nothing was done by this call")


def _ignore_error(answered: "asyncio.Future[Any]") -> None:
    """Retrieve the error of an abandoned job, so that asyncio does not log it."""
    if not answered.cancelled():
        answered.exception()
