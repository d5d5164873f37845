"""The threads that read for callers, so that a long list, export or plan does not block the worker.

A read opens its snapshot when it begins, and the worker answers a call after its commit. A caller therefore
reads its own writes, and the work that they make due at once (`FollowUp`).
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from forewarn.api.services import RunRead
from forewarn.clock import monotonic
from forewarn.core.errors import Unavailable
from forewarn.durations import ReadCounts
from forewarn.server.threads.fair_queue import FairQueue
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

T = TypeVar("T")

# Threads for callers, each with a database connection. More threads would only wait for the interpreter lock.
THREADS = 4
# Threads for the server's own reads: authentication must work while all other threads are busy.
OWN_THREADS = 1
# Callers never have this many reads waiting, unless the database does not answer.
MOST_WAITING = 1000
# The timeout of a read that has not begun, in real seconds.
LONGEST_WAIT = 10.0
# How long the stop waits for running reads.
STOP_SECONDS = 2.0

BUSY = "too many reads are waiting: try again"


@dataclass(frozen=True, slots=True)
class _Read:
    caller: str | None
    at_once: int  # how many reads of this caller may run at once
    work: Callable[[], Any]
    answer: "Future[Any]"


def _is_own(read: _Read) -> bool:
    return read.caller is None


class Reads:
    """The queue of reads and the threads that serve it.

    Callers take turns. A caller never has more threads than remain free, so slow reads of a few callers do
    not block the others. A caller may have a lower limit.
    """

    def __init__(
        self,
        *,
        settle: Callable[[], None] = lambda: None,
        threads: int = THREADS,
        longest_wait: float = LONGEST_WAIT,
        supervisor: Supervisor | None = None,
    ) -> None:
        """Take `settle`: it blocks until a caller can see the effects of its own writes."""
        self._settle = settle
        self._most = threads
        self._longest_wait = longest_wait
        self._news = threading.Condition()
        self._waiting: FairQueue[str | None, _Read] = FairQueue()  # lock: self._news
        self._running: Counter[str | None] = Counter()  # lock: self._news
        self._threads: list[threading.Thread] = []  # lock: self._news, until the end
        self._ended = False  # lock: self._news
        self._refused = 0  # lock: self._news
        self._supervisor = supervisor or Supervisor()

    async def run_own(self, work: Callable[[], T], /) -> T:
        """Run a read of the server itself."""
        return await self._run(None, OWN_THREADS, work)

    def run_for(self, caller: str, at_once: int = THREADS) -> RunRead:
        """Return a function that runs reads of a caller, at most `at_once` at the same time."""
        return partial(self._run, caller, at_once)

    def counts(self) -> ReadCounts:
        """Count reads, for the metrics. Thread-safe."""
        with self._news:
            return ReadCounts(
                running=self._running.total(), waiting=len(self._waiting), refused=self._refused
            )

    def stop(self) -> None:
        """Cancel queued reads and end the threads; abandon a read that takes longer than the limit."""
        with self._news:
            self._ended = True
            for read in self._waiting.clear():
                read.answer.cancel()
            self._news.notify_all()
        until = monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))

    async def _run(self, caller: str | None, at_once: int, work: Callable[[], T], /) -> T:
        read = _Read(caller, at_once, work, Future())
        with self._news:
            self._admit(read)
            self._news.notify()
        given_up = False

        def give_up() -> None:
            nonlocal given_up
            given_up = read.answer.cancel()  # False if the read has begun
            with self._news:
                self._refused += given_up

        timer = asyncio.get_running_loop().call_later(self._longest_wait, give_up)
        try:
            # If the caller disconnects, a read that has not begun is cancelled with it.
            answer: T = await asyncio.wrap_future(read.answer)
        except asyncio.CancelledError:
            if given_up:
                raise Unavailable(BUSY) from None
            raise
        finally:
            timer.cancel()
        return answer

    def _admit(self, read: _Read) -> None:
        if self._ended:
            raise Unavailable("stopping")
        if len(self._waiting) >= MOST_WAITING:
            self._refused += 1
            raise Unavailable(BUSY)
        self._find_thread()
        self._waiting.put(read.caller, read)

    def _find_thread(self) -> None:
        """Start a thread for one more read, unless there are enough. None starts before the first read."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        free = len(self._threads) - self._running.total()
        if free > len(self._waiting) or len(self._threads) >= self._most + OWN_THREADS:
            return
        serve = partial(self._supervisor.run, BackgroundTask.READ, self._serve)
        thread = threading.Thread(target=serve, name="forewarn-read", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            log.error("cannot start another thread for reads: %s", error)  # noqa: TRY400 - not a bug: no traceback
            if not self._threads:
                self._refused += 1
                raise Unavailable(f"nothing can be read now ({error}): try again") from None
        else:
            self._threads.append(thread)

    def _serve(self) -> None:
        while (read := self._take()) is not None:
            try:
                answer = self._read(read) if read.answer.set_running_or_notify_cancel() else None
            finally:
                self._finish(read)
            # Answer last: a caller that reads again at once then finds this thread free.
            if answer is not None:
                answer()

    def _read(self, read: _Read) -> Callable[[], None]:
        """Run a read; return a function that answers the caller."""
        try:
            if read.caller is not None:
                self._settle()
            found = read.work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            return partial(read.answer.set_exception, error)
        return partial(read.answer.set_result, found)

    def _take(self) -> _Read | None:
        """Wait for the next read that may run; return None when the threads must end."""
        with self._news:
            while not self._ended:
                read = self._waiting.take(_is_own) or self._waiting.take(self._may_run)
                if read is not None:
                    self._running[read.caller] += 1
                    return read
                self._news.wait()
        return None

    def _may_run(self, read: _Read) -> bool:
        free = self._most - (self._running.total() - self._running[None])
        return self._running[read.caller] < min(free, read.at_once)

    def _finish(self, read: _Read) -> None:
        with self._news:
            self._running[read.caller] -= 1
            if not self._running[read.caller]:
                del self._running[read.caller]
            self._news.notify_all()
