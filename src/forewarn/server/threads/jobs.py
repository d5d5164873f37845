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

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A use case, and the answer that its caller waits for."""

    work: Callable[[], Any]
    answer: "Future[Any]"


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
        self._ended = False

    async def run(self, work: Callable[[], T], /) -> T:
        """Have a guest's use case run, or the server's own."""
        return await self._run(None, work)

    def post(self, work: Callable[[], T]) -> "Future[T]":
        """Have a use case of the server's own run, from a thread that does not wait for it."""
        return self._put(None, work)

    def run_for(self, caller: str) -> RunJob:
        """Return what has the use cases of a caller run."""
        return partial(self._run, caller)

    def end(self) -> None:
        """Let the worker end when it has done all that was given before."""
        with self._news:
            self._ended = True
            self._news.notify()

    def next(self, *, timeout: float) -> Job | None:
        """Return the next job, None if there will be none; `queue.Empty` if none comes in time."""
        with self._news:
            if not self._news.wait_for(self._any, timeout):
                raise queue.Empty
            if self._callers and (self._callers_turn or not self._guests):
                return self._next_of_callers()
            self._callers_turn = True
            return self._guests.popleft() if self._guests else None

    async def _run(self, caller: str | None, work: Callable[[], T], /) -> T:
        return await asyncio.wrap_future(self._put(caller, work))

    def _put(self, caller: str | None, work: Callable[[], T]) -> "Future[T]":
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        with self._news:
            waiting = self._guests if caller is None else self._callers.setdefault(caller, deque())
            waiting.append(Job(work, answer))
            self._news.notify()
        return answer

    def _any(self) -> bool:
        return bool(self._guests or self._callers or self._ended)

    def _next_of_callers(self) -> Job:
        self._callers_turn = False
        caller, waiting = self._callers.popitem(last=False)
        job = waiting.popleft()
        if waiting:
            self._callers[caller] = waiting
        return job
