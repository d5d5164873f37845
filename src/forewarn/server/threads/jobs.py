"""Use cases that wait for the worker, and their answers."""

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A use case, and the answer that its caller waits for."""

    work: Callable[[], Any]
    answer: "Future[Any]"


class Jobs:
    """What the worker has been given to do, in the order it came."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    async def run(self, work: Callable[[], T], /) -> T:
        """Have a use case run; returns its answer when the boards show what it has changed."""
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        self._jobs.put(Job(work, answer))
        return await asyncio.wrap_future(answer)

    def end(self) -> None:
        """Let the worker end when it has done all that was given before."""
        self._jobs.put(None)

    def next(self, *, timeout: float) -> Job | None:
        """Return the next job, None if it was the last; `queue.Empty` if none comes in time."""
        return self._jobs.get(timeout=timeout)
