"""The one thread that runs all of control: one use case at a time, and a tick whenever something is due."""

import logging
import queue
import threading
from collections.abc import Callable
from datetime import datetime

from forewarn.clock import Clock, ScaledClock, monotonic
from forewarn.control.answering_once import AnsweringOnce
from forewarn.control.engine.engine import Engine, Stuck
from forewarn.control.following.board_feed import BoardFeed
from forewarn.core.errors import Unavailable
from forewarn.server.threads.jobs import Job, Jobs
from forewarn.server.threads.time_watch import SAVE_TIME_EVERY, TimeWatch

log = logging.getLogger(__name__)

# The longest sleep: within it a jump of the system's clock is noticed, and what guests were sent is saved.
LONGEST_SLEEP = 5.0
# After a fault of the store.
RETRY_AFTER = 1.0
# How often it is shown that something can be saved, in real time; the sleep is no longer than that.
PROVE_EVERY = LONGEST_SLEEP
# A thread that has shown nothing for so long hangs, in the store or in a job.
HANGS_AFTER = 6 * PROVE_EVERY


class Worker:
    """Runs use cases one by one, and the engine between them."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        engine: Engine,
        answering: AnsweringOnce,
        clock: Clock,
        feed: BoardFeed,
        time: TimeWatch,
    ) -> None:
        self._jobs = jobs
        # Saves what must be saved before anything else is decided.
        self.first: Callable[[], None] = lambda: None
        self._engine = engine
        self._answering = answering
        self._clock = clock
        self._feed = feed
        self._time = time
        self._thread = threading.Thread(target=self._run, name="forewarn-worker", daemon=True)
        self._next_due: datetime | None = None
        self._more = False  # whether the last tick left something for the next
        self._trouble: str | None = None
        self._proved = True  # whether something could be saved when that was last tried
        self._prove_at = self._proved_at = monotonic()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def thread(self) -> int:
        """The id of the thread that it runs on, once it does."""
        return self._thread.ident or 0

    @property
    def trouble(self) -> str | None:
        """Why nothing can be saved now, if that is so."""
        if self._trouble is None and not self.writable:
            return f"nothing has been saved for {monotonic() - self._proved_at:.0f} seconds"
        return self._trouble

    @property
    def writable(self) -> bool:
        """Whether something could be saved a short while ago."""
        return self._proved and monotonic() - self._proved_at <= HANGS_AFTER

    def stop(self) -> None:
        """Finish what was submitted, save what is only in memory, and end."""
        self._jobs.end()
        self._thread.join()

    def _run(self) -> None:
        self._tick()
        while True:
            try:
                job = self._jobs.next(timeout=self._sleep())
            except queue.Empty:
                self._tick()
                continue
            if job is None:
                break
            self._do(job)
            self._tick()
        self._save_all()

    def _do(self, job: Job) -> None:
        try:
            # First: a job may start what a jump of the clock has made due.
            self._time.look()
            self.first()
            result = job.work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            if isinstance(error, Unavailable) and self._proved:
                self._prove_at = monotonic()  # is that so for all?
            job.answer.set_exception(error)
        else:
            self._catch_up()
            job.answer.set_result(result)

    def _catch_up(self) -> None:
        """Bring the boards up to date before a caller is answered."""
        try:
            self._feed.catch_up()
        except Unavailable as error:
            log.warning("boards are behind: %s", error)
        except Exception:
            # The next tick tries again; a worker that ends would take the whole service with it.
            log.exception("boards are behind")

    def _tick(self) -> None:
        try:
            now = self._time.look()
            self.first()
            self._prove(now)
            # Old answers can wait until there is nothing better to do.
            self._more = self._engine.tick(now) or self._answering.prune()
            self._feed.catch_up()
            self._next_due = self._engine.next_due(now)
            # A tick that had nothing to do has saved nothing, and shows nothing.
            self._proved = self._proved or self._more
            if self._proved:
                self._recovered()
        except Stuck as error:
            self._stumbled("some orders cannot go on", detail=str(error))
        except Unavailable as error:
            self._proved = False
            self._stumbled("nothing can be saved, polls go on being answered", detail=str(error))
        except Exception:
            log.exception("a tick failed")
            self._stumbled("a tick failed")

    def _prove(self, now: datetime) -> None:
        """Save something now and then: a full disk is seen before somebody's order is refused."""
        if monotonic() < self._prove_at:
            return
        self._prove_at = monotonic() + PROVE_EVERY
        self._engine.prove_present(now)
        self._proved, self._proved_at = True, monotonic()

    def _sleep(self) -> float:
        """Return how many real seconds to wait for a job at most."""
        if self._trouble is not None:
            return RETRY_AFTER
        if self._more:
            return 0.0
        longest = SAVE_TIME_EVERY if isinstance(self._clock, ScaledClock) else LONGEST_SLEEP
        if self._next_due is None or not self._clock.speed:
            return longest
        ahead = (self._next_due - self._clock.now()).total_seconds() / self._clock.speed
        return min(max(ahead, 0.0), longest)

    def _stumbled(self, why: str, *, detail: str = "") -> None:
        """Take note of trouble; its detail is for the log alone, for probes need no token."""
        if self._trouble is None:
            log.error("%s", f"{why}: {detail}" if detail else why)
        self._trouble = f"{why}; the log says why"

    def _recovered(self) -> None:
        if self._trouble is not None:
            log.info("all is well again")
        self._trouble = None

    def _save_all(self) -> None:
        try:
            self._engine.save_all(self._clock.now())
        except Unavailable as error:
            log.warning("the last polls could not be saved: %s", error)
