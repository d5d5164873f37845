"""Use cases that wait for the worker, and their answers."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from queue import Empty
from typing import Any, Protocol, TypeVar

from forewarn.clock import monotonic
from forewarn.control.use_case import Alone, ForeseenUseCase
from forewarn.core.errors import MAY_STILL_HAPPEN, Unavailable, Uncertain
from forewarn.server.threads.fair_queue import FairQueue
from forewarn.store.batch import Transaction
from forewarn.store.prefetch import Prefetch

T = TypeVar("T")

# How long the database may keep a caller waiting, who is to be answered within six seconds, one of which may
# have gone by until it was known who calls. Usually the store gives up before; this is for a database that
# answers now and then, or of which only the connections hang.
LONGEST_WAIT = 4.5
LOOK_EVERY = 0.25
# While guests call at least this often, in seconds, other jobs are saved one at a time. A guest that comes
# meanwhile waits for one of them, not for a batch: 2.5 times as long as without them instead of 4 times
# (`bench --only tenants`).
GUESTS_ACTIVE = 0.1
# A tick takes some milliseconds. If the database has fallen silent, or very much is due, readers do not wait.
LONGEST_FOLLOW_UP = 0.25


class Turn(IntEnum):
    """The queues that take turns, in this order."""

    GUESTS = 0
    OWN = 1  # of the server itself, such as answers of drivers
    CALLERS = 2  # of the operator API


@dataclass(frozen=True, slots=True)
class Job:
    """A use case, and the answer that its caller waits for."""

    work: Callable[[Transaction], Any] | Alone[Any]
    answer: "Future[Any]"
    turn: Turn = Turn.CALLERS
    who: str = ""  # within a queue they take turns, too

    @property
    def alone(self) -> bool:
        """Whether it may not be saved together with others."""
        return isinstance(self.work, Alone)

    @property
    def foreseen(self) -> Prefetch | None:
        """What is known of what it will ask for."""
        return self.work.foreseen if isinstance(self.work, ForeseenUseCase) else None


class RunJob(Protocol):
    """Has the worker run a use case."""

    async def __call__(self, job: Callable[[Transaction], T] | Alone[T], /) -> T:
        """Return the use case's answer when the boards show what it has changed."""
        ...


class FollowUp:
    """Whether a tick is owed for answered jobs: readers wait for it, for a moment at most.

    The engine's next tick starts what a released hold held. A caller that has released the hold and then
    reads should find it started. The worker writes it, the threads that read wait.
    """

    def __init__(self, *, longest_wait: float = LONGEST_FOLLOW_UP) -> None:
        self._longest_wait = longest_wait
        self._news = threading.Condition()
        self._owed = False  # lock: self._news
        self._looks = 0  # lock: self._news

    def owe(self) -> None:
        """Note that something may follow from jobs that are answered now."""
        with self._news:
            self._owed = True

    def looked(self) -> None:
        """Note that the engine has looked, whatever came of it."""
        with self._news:
            self._owed = False
            self._looks += 1
            self._news.notify_all()

    def wait(self) -> None:
        """Wait for the engine's next look, if one is owed; not for what that leaves for later ones."""
        with self._news:
            if self._owed:
                before = self._looks
                self._news.wait_for(lambda: self._looks != before, self._longest_wait)


class Jobs:
    """What the worker has been given to do.

    Guests, the server itself and the callers of the operator API take turns. So do the guests of different
    projects, and different callers, however much each of them has asked for.
    """

    def __init__(self, *, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self._news = threading.Condition()
        # Lock: self._news, but any thread may see without it whether one is empty.
        self._queues: dict[Turn, FairQueue[str, Job]] = {turn: FairQueue() for turn in Turn}
        self._last = Turn.CALLERS  # whose turn it was last; lock: self._news
        self._guest_came_at = monotonic() - GUESTS_ACTIVE  # lock: self._news
        self._ended = False  # lock: self._news
        self._is_abandoned = False  # lock: self._news
        # Both are set before any thread is started.
        # Tells how many seconds the worker has waited for a database that is slow to answer.
        self.waited: Callable[[], float] = lambda: 0.0
        # Tells how many seconds it has waited for what it asked last.
        self.waited_now: Callable[[], float] = lambda: 0.0
        self.follow_up = FollowUp()

    async def run(self, work: Callable[[Transaction], T] | Alone[T], /) -> T:
        """Have a use case of the server's own run."""
        return await self._run(Turn.OWN, "", work)

    def post(self, work: Callable[[Transaction], T] | Alone[T]) -> "Future[T]":
        """Have a use case of the server's own run, from a thread that does not wait for it."""
        return self._put(Turn.OWN, "", work)

    @property
    def waiting(self) -> bool:
        """Whether there is a job to do. Any thread may ask."""
        return self._any()

    @property
    def guest_waits(self) -> bool:
        """Whether a guest's job waits. Any thread may ask."""
        return bool(self._queues[Turn.GUESTS])

    def run_for(self, caller: str) -> RunJob:
        """Return what has the use cases of a caller run."""
        return partial(self._run, Turn.CALLERS, caller)

    def run_for_guests(self, project: str) -> RunJob:
        """Return what has the use cases of a project's guests run."""
        return partial(self._run, Turn.GUESTS, project)

    def end(self) -> None:
        """Let the worker end when it has done all that was given before."""
        with self._news:
            self._ended = True
            self._news.notify()

    def abandon(self) -> None:
        """Refuse all that wait, and all that come: the worker does nothing any more."""
        with self._news:
            self._is_abandoned = True
            waiting = [job for queue in self._queues.values() for job in queue.clear()]
        for job in waiting:
            job.answer.set_exception(_stopping())

    def take(self, most: int, *, timeout: float) -> list[Job]:
        """Return jobs that are saved together, in the order of their turns; none once the queues have ended.

        A batch has guests' jobs or others, not both: loading for the others would delay the guests.
        Raise `queue.Empty` if no job comes in time.
        """
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
        """Let jobs wait again that were taken and not done; `after` is the one that was done last."""
        with self._news:
            self._return(jobs, after=after)

    def _return(self, jobs: Sequence[Job], *, after: Job) -> None:
        for job in reversed(jobs):
            self._queues[job.turn].put_back(job.who, job)
        self._last = after.turn

    def _next(self, *, after: Sequence[Job]) -> Job | None:
        """Take the next job that may be saved with the ones taken before."""
        for way in range(1, len(Turn) + 1):
            turn = Turn((self._last + way) % len(Turn))
            if after and (turn is Turn.GUESTS) != (after[0].turn is Turn.GUESTS):
                continue
            if (job := self._queues[turn].take()) is not None:
                self._last = turn
                return job
        return None

    async def _run(self, turn: Turn, who: str, work: Callable[[Transaction], T] | Alone[T], /) -> T:
        if self.waited_now() > LONGEST_WAIT:
            raise _too_slow()  # like all who have waited, but at once
        before, answer = self.waited(), self._put(turn, who, work)
        answered = asyncio.wrap_future(answer)
        while not (await asyncio.wait([answered], timeout=LOOK_EVERY))[0]:
            if self.waited() - before > LONGEST_WAIT:
                answered.add_done_callback(_ignore)
                raise self._given_up(answer)
        return answered.result()

    def _given_up(self, answer: "Future[Any]") -> Unavailable:
        """Take back a job that still waits; what is under way cannot be."""
        with self._news:
            taken_back = [queue.withdraw(lambda job: job.answer is answer) for queue in self._queues.values()]
        if any(taken_back):
            return _too_slow()
        return Uncertain(f"the database is too slow to answer; {MAY_STILL_HAPPEN}")

    def _put(self, turn: Turn, who: str, work: Callable[[Transaction], T] | Alone[T]) -> "Future[T]":
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


def _ignore(answered: "asyncio.Future[Any]") -> None:
    """Let nobody be told of the error of a job that was given up."""
    if not answered.cancelled():
        answered.exception()
