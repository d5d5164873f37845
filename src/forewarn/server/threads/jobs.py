"""Use cases that wait for the worker, and their answers."""

import asyncio
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from forewarn.control.alone import Alone
from forewarn.control.ports.foreseen import Foreseen, ForeseenUseCase
from forewarn.core.errors import MAY_STILL_HAPPEN, Unavailable, Uncertain
from forewarn.server.threads.follow_up import FollowUp

T = TypeVar("T")

# How long the database may keep a caller waiting, who is to be answered within six seconds, one of which may
# have gone by until it was known who calls. Usually the store gives up before; this is for a database that
# answers now and then, or of which only the connections hang.
LONGEST_WAIT = 4.5
LOOK_EVERY = 0.25


@dataclass(frozen=True, slots=True)
class Job:
    """A use case, and the answer that its caller waits for."""

    work: Callable[[], Any]
    answer: "Future[Any]"

    @property
    def alone(self) -> bool:
        """Whether it may not be saved together with others."""
        return isinstance(self.work, Alone)

    @property
    def foreseen(self) -> Foreseen | None:
        """What is known of what it will ask for."""
        return self.work.foreseen if isinstance(self.work, ForeseenUseCase) else None


class RunJob(Protocol):
    """Has a use case run."""

    async def __call__(self, job: Callable[[], T], /) -> T:
        """Return the use case's answer when the boards show what it has changed."""
        ...


class Jobs:
    """What the worker has been given to do.

    Every second turn is the guests', who wait for nobody; the others are the callers' of the operator API,
    one after the other, however much each of them has asked for.
    """

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._guests: deque[Job] = deque()
        self._callers: OrderedDict[str, deque[Job]] = OrderedDict()  # whose turn is next comes first
        self._callers_turn = False
        self._first: Job | None = None  # its turn has come, but not together with those before it
        self._ended = False
        # Tells how many seconds the worker has waited for a database that is slow to answer.
        self.waited: Callable[[], float] = lambda: 0.0
        # Tells how many seconds it has waited for what it asked last.
        self.waited_now: Callable[[], float] = lambda: 0.0
        self.follow_up = FollowUp()

    async def run(self, work: Callable[[], T], /) -> T:
        """Have a guest's use case run, or the server's own."""
        return await self._run(None, work)

    def post(self, work: Callable[[], T]) -> "Future[T]":
        """Have a use case of the server's own run, from a thread that does not wait for it."""
        return self._put(None, work)

    @property
    def waiting(self) -> bool:
        """Whether there is a job to do. Any thread may ask."""
        return self._any()

    def run_for(self, caller: str) -> RunJob:
        """Return what has the use cases of a caller run."""
        return partial(self._run, caller)

    def end(self) -> None:
        """Let the worker end when it has done all that was given before."""
        with self._news:
            self._ended = True
            self._news.notify()

    def take(self, most: int, *, timeout: float) -> list[Job]:
        """Return jobs that can be saved together, whose turn comes first first; none if there will be none.

        `queue.Empty` if none comes in time.
        """
        with self._news:
            if not self._news.wait_for(self._any, timeout):
                raise queue.Empty
            taken: list[Job] = []
            while len(taken) < most and (job := self._next()) is not None:
                if job.alone and taken:
                    self._first = job
                    break
                taken.append(job)
                if job.alone:
                    break
            return taken

    def _next(self) -> Job | None:
        if self._first is not None:
            job, self._first = self._first, None
            return job
        if self._callers and (self._callers_turn or not self._guests):
            return self._next_of_callers()
        self._callers_turn = True
        return self._guests.popleft() if self._guests else None

    async def _run(self, caller: str | None, work: Callable[[], T], /) -> T:
        if self.waited_now() > LONGEST_WAIT:
            raise _too_slow()  # like all who have waited, but at once
        before, answer = self.waited(), self._put(caller, work)
        answered = asyncio.wrap_future(answer)
        while not (await asyncio.wait([answered], timeout=LOOK_EVERY))[0]:
            if self.waited() - before > LONGEST_WAIT:
                answered.add_done_callback(_ignore)
                raise self._given_up(answer)
        return answered.result()

    def _given_up(self, answer: "Future[Any]") -> Unavailable:
        """Take back a job that still waits; what is under way cannot be."""
        with self._news:
            taken_back = self._take_back(answer)
        if taken_back:
            return _too_slow()
        return Uncertain(f"the database is too slow to answer; {MAY_STILL_HAPPEN}")

    def _take_back(self, answer: "Future[Any]") -> bool:
        if self._first is not None and self._first.answer is answer:
            self._first = None
            return True
        for waiting in (self._guests, *self._callers.values()):
            for job in waiting:
                if job.answer is answer:
                    waiting.remove(job)
                    self._callers = OrderedDict((who, jobs) for who, jobs in self._callers.items() if jobs)
                    return True
        return False

    def _put(self, caller: str | None, work: Callable[[], T]) -> "Future[T]":
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        with self._news:
            waiting = self._guests if caller is None else self._callers.setdefault(caller, deque())
            waiting.append(Job(work, answer))
            self._news.notify()
        return answer

    def _any(self) -> bool:
        return bool(self._first or self._guests or self._callers or self._ended)

    def _next_of_callers(self) -> Job:
        self._callers_turn = False
        caller, waiting = self._callers.popitem(last=False)
        job = waiting.popleft()
        if waiting:
            self._callers[caller] = waiting
        return job


def _too_slow() -> Unavailable:
    return Unavailable("the database is too slow to answer; nothing was done by this call")


def _ignore(answered: "asyncio.Future[Any]") -> None:
    """Let nobody be told of the error of a job that was given up."""
    if not answered.cancelled():
        answered.exception()
