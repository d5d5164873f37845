"""The threads that read for people, so that no list, export or plan keeps the worker from its work.

A read opens its snapshot when it begins, and the worker answers what is committed: so whoever has been
answered reads what it was answered, and what follows from it at once (`FollowUp`).
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from forewarn.clock import monotonic
from forewarn.core.errors import Unavailable
from forewarn.durations import ReadCounts
from forewarn.server.threads.fair_queue import FairQueue
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

T = TypeVar("T")

# For callers, with a connection each. More would only wait for each other: what is read is put together by
# one processor at a time.
THREADS = 4
# For the server's own reads: who calls must be known, however busy the others are.
OWN_THREADS = 1
# Far more than callers have at once, unless the database has fallen silent.
MOST_WAITING = 1000
# Until a read is given up that has not begun, in real seconds.
LONGEST_WAIT = 10.0
# Until a read that goes on is left alone when the service stops.
STOP_SECONDS = 2.0

BUSY = "too much is being read already: try again"


@dataclass(frozen=True, slots=True)
class _Read:
    caller: str | None
    at_once: int  # reads of this caller
    work: Callable[[], Any]
    answer: "Future[Any]"


def _is_own(read: _Read) -> bool:
    return read.caller is None


class RunRead(Protocol):
    """Has a thread read something."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Return what was read; its errors come through."""
        ...


class Reads:
    """What has been given to the threads that read.

    Callers take turns, however much each of them has asked for. No caller has more threads than are left
    free, so slow reads of a few callers do not block the others. A caller may have a lower limit.
    """

    def __init__(
        self,
        *,
        settle: Callable[[], None] = lambda: None,
        threads: int = THREADS,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        """Take what a caller's read waits for before it begins."""
        self._settle = settle
        self._most = threads
        self._longest_wait = longest_wait
        self._news = threading.Condition()
        self._waiting: FairQueue[str | None, _Read] = FairQueue()  # lock: self._news
        self._running: Counter[str | None] = Counter()  # lock: self._news
        self._threads: list[threading.Thread] = []  # lock: self._news, until the end
        self._ended = False  # lock: self._news
        self._refused = 0  # lock: self._news
        self.supervisor = Supervisor()  # until it is given the server's, before any thread is started

    async def run(self, work: Callable[[], T], /) -> T:
        """Have something read for the server itself."""
        return await self._run(None, OWN_THREADS, work)

    def run_for(self, caller: str, at_once: int = THREADS) -> RunRead:
        """Return a function that reads for a caller, with so many of its reads at once at most."""
        return partial(self._run, caller, at_once)

    def counts(self) -> ReadCounts:
        """Count reads, for the metrics. Any thread may ask."""
        with self._news:
            return ReadCounts(
                running=self._running.total(), waiting=len(self._waiting), refused=self._refused
            )

    def stop(self) -> None:
        """Begin no more reads, and end; one that takes longer than that is left alone, and ends in vain."""
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
            given_up = read.answer.cancel()  # not if it has begun
            with self._news:
                self._refused += given_up

        timer = asyncio.get_running_loop().call_later(self._longest_wait, give_up)
        try:
            # Whoever goes away meanwhile takes a read along that has not begun.
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
        """Start a thread for one more read, unless there are enough; not while the server starts."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        free = len(self._threads) - self._running.total()
        if free > len(self._waiting) or len(self._threads) >= self._most + OWN_THREADS:
            return
        serve = partial(self.supervisor.run, BackgroundTask.READ, self._serve)
        thread = threading.Thread(target=serve, name="forewarn-read", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            log.error("nothing more is read at once: %s", error)  # noqa: TRY400 - it is no bug of ours
            if not self._threads:
                self._refused += 1
                raise Unavailable(f"nothing can be read now ({error}): try again") from None
        else:
            self._threads.append(thread)

    def _serve(self) -> None:
        while (read := self._take()) is not None:
            try:
                tell = self._read(read) if read.answer.set_running_or_notify_cancel() else None
            finally:
                self._finish(read)
            # Last: whoever is told and asks for more finds this thread free.
            if tell is not None:
                tell()

    def _read(self, read: _Read) -> Callable[[], None]:
        """Read something; returns what tells the caller."""
        try:
            if read.caller is not None:
                self._settle()
            found = read.work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            return partial(read.answer.set_exception, error)
        return partial(read.answer.set_result, found)

    def _take(self) -> _Read | None:
        """Return the next read, once there is one that has its turn; None if there will be none."""
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
