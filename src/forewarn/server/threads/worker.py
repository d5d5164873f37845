"""The one thread that runs all of control: one use case at a time, and a tick whenever something is due."""

import logging
import queue
import threading
from datetime import datetime, timedelta

from forewarn.clock import Clock, ScaledClock, SystemClock
from forewarn.control.engine.engine import Engine, Stuck
from forewarn.control.following.board_feed import BoardFeed
from forewarn.core.errors import Unavailable
from forewarn.server.threads.jobs import Job, Jobs

log = logging.getLogger(__name__)

# The longest sleep: within it a jump of the system's clock is noticed, and what guests were sent is saved.
LONGEST_SLEEP = 5.0
# How often a clock that runs faster than the world saves where it is.
SAVE_TIME_EVERY = 1.0
# After a fault of the store.
RETRY_AFTER = 1.0


class Worker:
    """Runs use cases in the order they come, and the engine between them."""

    def __init__(self, jobs: Jobs, *, engine: Engine, clock: Clock, feed: BoardFeed) -> None:
        self._jobs = jobs
        self._engine = engine
        self._clock = clock
        self._feed = feed
        self._thread = threading.Thread(target=self._run, name="forewarn-worker", daemon=True)
        self._next_due: datetime | None = None
        self._more = False  # whether the last tick left something for the next
        self._trouble: str | None = None
        self._jumped = timedelta()  # of the system's clock, as far as it is not saved yet

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be saved now, if that is so."""
        return self._trouble

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
            self._watch_time(self._clock.now())
            result = job.work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
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
            now = self._clock.now()
            self._watch_time(now)
            self._more = self._engine.tick(now)
            self._feed.catch_up()
            self._next_due = self._engine.next_due(now)
            self._recovered()
        except Stuck as error:
            self._stumbled(str(error))
        except Unavailable as error:
            self._stumbled(f"nothing can be saved, polls go on being answered: {error}")
        except Exception:
            log.exception("a tick failed")
            self._stumbled("a tick failed; the log says why")

    def _watch_time(self, now: datetime) -> None:
        if isinstance(self._clock, SystemClock):
            jump = self._clock.jump()
            if jump is not None:
                log.warning("the system clock jumped forward by %s: unapproved starts wait as long", jump)
                self._jumped += jump
            if self._jumped:
                # A system that wakes up may find its database still away: then this is tried again.
                self._engine.grant_grace(self._jumped, self._clock.now())
                self._jumped = timedelta()
        elif isinstance(self._clock, ScaledClock):
            # Saved ahead of itself, so that time does not go back if this process is killed.
            ahead = now + timedelta(seconds=2 * SAVE_TIME_EVERY * self._clock.speed)
            self._engine.keep_time(ahead)
            self._clock.allow(ahead)

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

    def _stumbled(self, why: str) -> None:
        if self._trouble is None:
            log.error("%s", why)
        self._trouble = why

    def _recovered(self) -> None:
        if self._trouble is not None:
            log.info("all is well again")
        self._trouble = None

    def _save_all(self) -> None:
        try:
            self._engine.save_all(self._clock.now())
        except Unavailable as error:
            log.warning("the last polls could not be saved: %s", error)
