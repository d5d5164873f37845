"""Deadlines for a database that stops answering: how long a thread waits, and when calls fail fast.

The kernel of a stopped server still acknowledges packets, so no timeout of TCP or of the server ends a wait.
Only this side can answer its callers in time.
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

# After this time without an answer, a ping on another connection checks the database. Wait and ping together
# are shorter than the six seconds within which every caller gets an answer.
SILENT_AFTER = 2.0
# A longer statement is given up even if the database answers pings: its own connection may be dead.
LONGEST_STATEMENT = 30.0
# No statement of a healthy database takes this long. A longer one counts as waiting, not as work.
SLOW_AFTER = 0.5
PROBE_EVERY = 1.0


class Unresponsive(Exception):
    """The database has not answered in time."""


class StatementTooLong(Unresponsive):
    """A statement has taken too long, though the database answers."""


class Deadlines:
    """Ends waits that last too long, and then makes calls fail fast until the database answers again.

    A prober, with a thread and a connection of its own, checks whether it does.
    """

    def __init__(self, *, name: str, limit: float | None = None) -> None:
        """Take the longest wait. None sets no limit: before the server starts, a migration may take long."""
        # Owner of the limit, the probe and the ping: the start and the stop of the server.
        self.limit = limit
        self.silences = 0  # lock: self._lock
        self.supervisor = Supervisor()  # until the server sets its own
        self._name = name
        self._probe: Callable[[], None] | None = None
        self._ping: Callable[[], None] | None = None
        self._lock = threading.Lock()
        # Lock: self._lock; other threads read one of the two at a time.
        self._trouble: str | None = None
        self._reads_too = True
        # Owner of each entry: its thread; other threads read one entry at a time.
        self._since: dict[int, float] = {}  # when each waiting thread began to wait
        self._waited: dict[int, float] = {}  # seconds that each thread has spent in slow waits

    def arm(self, probe: Callable[[], None], *, ping: Callable[[], None]) -> None:
        """Limit waits from now on.

        `probe` writes and `ping` reads; both raise while the database does not answer.
        """
        self._probe, self._ping = probe, ping
        self.limit = SILENT_AFTER

    def disarm(self) -> None:
        """Remove the limit and end the prober."""
        self._probe = self._ping = self.limit = None

    @property
    def trouble(self) -> str | None:
        """Why calls fail fast now, if they do."""
        return self._trouble

    def check(self, *, reading: bool = True) -> None:
        """Fail fast while the database does not answer."""
        if (trouble := self._trouble) is not None and (self._reads_too or not reading):
            raise Unavailable(f"{trouble}; nothing was done by this call")

    def fail_fast(self, why: str = "does not answer", *, reads_too: bool = True) -> None:
        """Make calls fail fast until the prober gets an answer."""
        with self._lock:
            if self._probe is None or self._trouble is not None:
                return
            self._reads_too = reads_too
            self._trouble = f"{self._name} {why}"
            self.silences += 1
        log.error("%s: calls fail until it answers again", self._trouble)
        watch = partial(self.supervisor.run, BackgroundTask.PROBER, self._watch)
        try:
            threading.Thread(target=watch, name="forewarn-prober", daemon=True).start()
        except RuntimeError as error:  # the process has no threads left: the next call finds out by itself
            log.error("%s, and the prober did not start: %s", self._trouble, error)  # noqa: TRY400 - not a bug
            self._trouble = None

    def waited(self, thread: int) -> float:
        """Return how long a thread has waited in all, in waits that took longer than they should."""
        current = self.waiting(thread)
        return self._waited.get(thread, 0.0) + (current if current > SLOW_AFTER else 0.0)

    def waiting(self, thread: int) -> float:
        """Return how long a thread has waited for its last statement."""
        since = self._since.get(thread)
        return 0.0 if since is None else monotonic() - since

    def begin(self) -> float:
        """Note that this thread begins to wait."""
        self._since[threading.get_ident()] = now = monotonic()
        return now

    def end(self, began: float) -> None:
        """Note that this thread no longer waits."""
        thread = threading.get_ident()
        self._since.pop(thread, None)
        if (lasted := monotonic() - began) > SLOW_AFTER:
            self._waited[thread] = self._waited.get(thread, 0.0) + lasted

    def with_deadline(self, steps: Generator[Any, int, R]) -> Generator[Any, int, R]:
        """Run a driver's steps between its waits, but raise Unresponsive once the database stops answering.

        The driver regularly receives 0, which means that nothing has arrived yet.
        """
        heard, alive = monotonic(), 0.0
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if ready:
                    heard, alive = monotonic(), 0.0
                else:
                    alive = self._check_wait(quiet=monotonic() - heard, alive=alive)
                wanted = steps.send(ready)
        except StopIteration as done:
            result: R = done.value
            return result

    def _check_wait(self, *, quiet: float, alive: float) -> float:
        """Check a wait after this many quiet seconds; return the second at which a ping was last answered."""
        if self._trouble is not None and self._reads_too:
            raise Unresponsive
        if self.limit is None or quiet - alive < self.limit:
            return alive
        if quiet > LONGEST_STATEMENT:
            raise StatementTooLong
        if (ping := self._ping) is None:
            raise Unresponsive
        try:
            ping()
        except Exception as error:
            raise Unresponsive from error
        return quiet

    def _watch(self) -> None:
        pause = threading.Event()
        while (probe := self._probe) is not None:  # None: the server stops
            pause.wait(PROBE_EVERY)
            try:
                probe()
            except Exception as error:  # noqa: BLE001 - whatever failed, the probe is repeated
                log.debug("%s: %s", self._trouble, error)
            else:
                log.info("%s answers again", self._name)
                break
        self._trouble = None
