"""Deadlines for a database that falls silent: how long it is waited for, and whether it is asked at all.

A stopped server's kernel goes on acknowledging, so that no time-out of TCP's or of the server's own ends a
wait. What a caller is told in time depends on this side alone.
"""

import logging
import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from forewarn.clock import monotonic
from forewarn.core.errors import Unavailable
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

R = TypeVar("R")

# After so long without a word it is asked on another connection whether the database lives: together enough
# shorter than the six seconds in which every caller is answered.
SILENT_AFTER = 2.0
# A statement that takes longer than this is given up, though the database lives: its connection may not.
LONGEST_STATEMENT = 30.0
# No statement takes so long where all is well: what does is waited for, not worked on.
SLOW_AFTER = 0.5
PROBE_EVERY = 1.0


class Silent(Exception):
    """The database has said nothing for too long."""


class TooLong(Silent):
    """A statement has taken too long of a database that lives."""


class Deadlines:
    """Knows which threads wait for a database, ends what lasts too long, and then refuses the next at once.

    A prober, with a connection and a thread of its own, finds out when the database answers again.
    """

    def __init__(self, *, name: str, limit: float | None = None) -> None:
        """Take how long to wait at most; None, before it is served: a migration may take long."""
        # Owner of the limit and of both probes: the start and the stop of the server.
        self.limit = limit
        self.silences = 0  # lock: self._lock
        self.supervisor = Supervisor()  # until it is given the server's
        self._name = name
        self._probe: Callable[[], None] | None = None
        self._lives: Callable[[], None] | None = None
        self._lock = threading.Lock()
        # Lock: self._lock; other threads read one of them at a time.
        self._trouble: str | None = None
        self._reads_too = True
        # Owner of each entry: the thread it is of; others read one at a time.
        self._since: dict[int, float] = {}  # threads that wait
        self._waited: dict[int, float] = {}  # by thread, in what took long

    def arm(self, probe: Callable[[], None], *, lives: Callable[[], None]) -> None:
        """Limit waits from now on.

        Both ask the database something, and raise while it is silent: `probe` whether it can be written,
        `lives` whether there is somebody.
        """
        self._probe, self._lives = probe, lives
        self.limit = SILENT_AFTER

    def disarm(self) -> None:
        """Wait for as long as it takes again, and end the prober."""
        self._probe = self._lives = self.limit = None

    @property
    def trouble(self) -> str | None:
        """Why the database is not asked now, if that is so."""
        return self._trouble

    def check(self, *, reading: bool = True) -> None:
        """Refuse to ask a database that does not answer."""
        if (trouble := self._trouble) is not None and (self._reads_too or not reading):
            raise Unavailable(f"{trouble}; nothing was done by this call")

    def fell_silent(self, why: str = "does not answer", *, reads_too: bool = True) -> None:
        """Ask no more, until the prober is answered."""
        with self._lock:
            if self._probe is None or self._trouble is not None:
                return
            self._reads_too = reads_too
            self._trouble = f"{self._name} {why}"
            self.silences += 1
        log.error("%s: nothing is asked of it before it answers again", self._trouble)
        watch = partial(self.supervisor.run, BackgroundTask.PROBER, self._watch)
        try:
            threading.Thread(target=watch, name="forewarn-prober", daemon=True).start()
        except RuntimeError as error:  # the process may have no more threads: the next to ask finds out again
            log.error("%s, and is asked again at once: %s", self._trouble, error)  # noqa: TRY400 - no bug of ours
            self._trouble = None

    def waited(self, thread: int) -> float:
        """Return how long a thread has waited in all, for what took longer than it should."""
        lasting = self.waiting(thread)
        return self._waited.get(thread, 0.0) + (lasting if lasting > SLOW_AFTER else 0.0)

    def waiting(self, thread: int) -> float:
        """Return how long a thread has waited for what it asked last."""
        since = self._since.get(thread)
        return 0.0 if since is None else monotonic() - since

    def begin(self) -> float:
        """Note that this thread waits from now on."""
        self._since[threading.get_ident()] = now = monotonic()
        return now

    def end(self, began: float) -> None:
        """Note that this thread waits no more."""
        thread = threading.get_ident()
        self._since.pop(thread, None)
        if (lasted := monotonic() - began) > SLOW_AFTER:
            self._waited[thread] = self._waited.get(thread, 0.0) + lasted

    def ended(self, steps: Generator[Any, int, R]) -> Generator[Any, int, R]:
        """Go through what a driver does between waits, but raise Silent once the database has fallen silent.

        The driver is told every now and then that there is nothing (0); whatever else it is told is news.
        """
        heard, lives = monotonic(), 0.0
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if ready:
                    heard, lives = monotonic(), 0.0
                else:
                    lives = self._look(quiet=monotonic() - heard, lives=lives)
                wanted = steps.send(ready)
        except StopIteration as done:
            result: R = done.value
            return result

    def _look(self, *, quiet: float, lives: float) -> float:
        """Look at a wait in which nothing was heard for so long; return until when the database has lived."""
        if self._trouble is not None and self._reads_too:
            raise Silent
        if self.limit is None or quiet - lives < self.limit:
            return lives
        if quiet > LONGEST_STATEMENT:
            raise TooLong
        if (asks := self._lives) is None:
            raise Silent
        try:
            asks()
        except Exception as error:
            raise Silent from error
        return quiet

    def _watch(self) -> None:
        pause = threading.Event()
        while (probe := self._probe) is not None:  # else nobody is served any more
            pause.wait(PROBE_EVERY)
            try:
                probe()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                log.debug("%s: %s", self._trouble, error)
            else:
                log.info("%s answers again", self._name)
                break
        self._trouble = None
