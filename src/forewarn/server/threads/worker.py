"""The worker: the one thread that writes to the store.

The worker takes the jobs that wait, opens a batch (one database transaction), and runs each job in a
savepoint with its open transaction as the argument (`Batches.run`). A job that raises is rolled back alone;
when the block of the batch ends, the batch commits, and everything in it is durable. Then the worker runs
the effects that jobs registered with `tx.after_commit`, applies the changes to the boards, and answers the
callers: an answer of 200 or 202 always follows the commit. Between batches the engine does what is due; it
and the jobs marked `Alone` commit in the same place, through `Batches.transact`. When guests last polled is
saved apart (`Store.save_activity`).

Besides the worker, these write: a start before the worker runs (migration, service time, a restored backup,
the fleet file), and the commands that work on a store without a server (tokens, backup, copy).
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.clock import ScaledClock, monotonic
from forewarn.control.board_feed import BoardFeed
from forewarn.control.engine.engine import Engine, Stuck
from forewarn.control.idempotent_calls import IdempotentCalls
from forewarn.control.use_case import Alone
from forewarn.core.errors import MAY_STILL_HAPPEN, Unavailable, Uncertain
from forewarn.server.threads.batches import Batches, Outcome
from forewarn.server.threads.jobs import Job, Jobs, Turn
from forewarn.server.threads.service_time import SAVE_TIME_EVERY, TimeWatch
from forewarn.store.opening.deadlines import Deadlines
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

# The longest sleep: within it a jump of the system's clock is noticed, and what guests were sent is saved.
LONGEST_SLEEP = 5.0
# After a fault of the store.
RETRY_AFTER = 1.0
# How often it is shown that something can be saved, and looked for what no change tells of, in real time; the
# sleep is no longer than that.
PROVE_EVERY = LONGEST_SLEEP
# A thread that has shown nothing for so long hangs, in the store or in a job.
HANGS_AFTER = 6 * PROVE_EVERY


# Jobs that are saved together: more gain little, and the first would wait for the last.
MOST_TOGETHER = 64
# When a batch is saved though more jobs wait, in seconds: that long the first of them has waited.
LONGEST_BATCH = 0.05
# Jobs that have waited together come before the next tick, though not all are saved in one batch; but not for
# longer than this, in seconds.
LONGEST_WITHOUT_TICK = 0.2
# How long a tick lasts while jobs wait, in seconds; what it has begun it ends.
LONGEST_PIECE = 0.01
# So long after a job the next one is expected, in seconds.
CALLERS_ABOUT = 1.0
# However many jobs there are: what guests were sent is saved, and whether external work is late is looked at.
TICK_AT_LEAST_EVERY = 1.0


def _answer(job: Job, outcome: Outcome) -> None:
    if outcome.error is None:
        job.answer.set_result(outcome.result)
    else:
        job.answer.set_exception(outcome.error)


def _fail_unanswered(jobs: Sequence[Job]) -> None:
    """Answer jobs that the worker took and did not answer: it has failed between the two."""
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(Uncertain(f"the worker failed; {MAY_STILL_HAPPEN}"))


class Worker:
    """Runs use cases, those that wait together in one transaction, and the engine between them."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        batches: Batches,
        engine: Engine,
        answering: IdempotentCalls,
        feed: BoardFeed,
        time: TimeWatch,
    ) -> None:
        self._jobs = jobs
        self._batches = batches
        # Saves what must be saved before anything else is decided. Set before the worker is started.
        self.first: Callable[[], None] = lambda: None
        self._engine = engine
        self._answering = answering
        self._feed = feed
        self._time = time
        self._clock = time.clock
        self.supervisor = Supervisor()  # until it is given the server's, before the worker is started
        self._thread = threading.Thread(target=self._work, name="forewarn-worker", daemon=True)
        # Owner of all that follows: the worker. Probes read the last three.
        self._next_due: datetime | None = None
        self._tick_at = 0.0  # whatever is due
        self._ticked_at = 0.0  # when the last one was over
        self._job_at = -CALLERS_ABOUT  # when jobs were last done
        self._more = False  # whether the last tick left something for the next
        self._prove_at = monotonic()
        self._trouble: str | None = None
        self._proved = True  # whether something could be saved when that was last tried
        self._proved_at = monotonic()

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

    def _work(self) -> None:
        try:
            self.supervisor.run(BackgroundTask.WORKER, self._run)
        finally:
            self._jobs.abandon()

    def _run(self) -> None:
        self.tick()
        while True:
            try:
                jobs = self._jobs.take(MOST_TOGETHER, timeout=self._sleep())
            except queue.Empty:
                self.tick()
                continue
            if not jobs:
                break
            self._do_some(jobs)
        self._save_all()

    def _do_some(self, jobs: Sequence[Job]) -> None:
        """Do as many jobs as are saved together, let the others wait again, and do what is due."""
        mine = jobs
        try:
            done = self.do(jobs)
            if done < len(jobs):
                self._jobs.put_back(jobs[done:], after=jobs[done - 1])
                mine = jobs[:done]
                if monotonic() < self._ticked_at + LONGEST_WITHOUT_TICK:
                    return
            # However many wait: what is due must not wait for ever.
            if self.may_be_due():
                self.tick()
            self._jobs.follow_up.looked()
        finally:
            _fail_unanswered(mine)

    def do(self, jobs: Sequence[Job]) -> int:
        """Run jobs in one batch, but not for long; return how many were done."""
        try:
            # First: a job may start what a jump of the clock has made due.
            self._time.look()
            self.first()
            outcomes = self._run_jobs(jobs)
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            outcomes = [Outcome(error=error)]
        if any(isinstance(each.error, Unavailable) for each in outcomes) and self._proved:
            self._prove_at = self._tick_at = monotonic()  # is that so for all?
        self.catch_up()
        if self.may_be_due():
            self._jobs.follow_up.owe()
        for job, outcome in zip(jobs, outcomes, strict=False):
            _answer(job, outcome)
        self._job_at = monotonic()
        return len(outcomes)

    def _run_jobs(self, jobs: Sequence[Job]) -> list[Outcome]:
        if isinstance(jobs[0].work, Alone):  # what it raises is its outcome too: it is the only one
            return [Outcome(jobs[0].work.work(self._batches.transact))]
        until = monotonic() + LONGEST_BATCH

        def enough(done: int) -> bool:
            guest_waits = jobs[done - 1].turn is not Turn.GUESTS and self._jobs.guest_waits
            return guest_waits or monotonic() > until

        foreseen = [job.foreseen for job in jobs if job.foreseen is not None]
        work = [job.work for job in jobs if not isinstance(job.work, Alone)]  # all: `Jobs.take` says so
        return self._batches.run(work, foreseen=foreseen, enough=enough)

    def catch_up(self) -> None:
        """Bring the boards up to date before a caller is answered."""
        try:
            self._feed.catch_up()
        except Unavailable as error:
            if self._trouble is None:  # else that is logged, and why
                log.warning("boards are behind: %s", error)
        except Exception:
            # The next tick tries again; a worker that ends would take the whole service with it.
            log.exception("boards are behind")

    def may_be_due(self) -> bool:
        """Return whether there may be something to do besides jobs, without asking the store."""
        if monotonic() >= self._tick_at:
            return True
        return self._trouble is None and (self._more or self._engine.may_be_due(self._clock.now()))

    def tick(self) -> None:
        """Do what is due besides jobs, or note why it cannot be done."""
        began = monotonic()
        self._tick_at = began + TICK_AT_LEAST_EVERY
        try:
            now = self._time.look()
            self.first()
            self._prove(now)
            # Old answers can wait until there is nothing better to do.
            busy = self._jobs.waiting or began - self._job_at < CALLERS_ABOUT
            self._more = self._engine.tick(now, should_yield=lambda: self._is_awaited(began), few=busy) or (
                not self._jobs.waiting and self._answering.prune(self._batches.transact)
            )
            self._feed.catch_up()
            self._next_due = self._engine.known_due(now)
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
        finally:
            self.catch_up()  # also with what it had saved when it failed
            self._ticked_at = monotonic()

    def _is_awaited(self, began: float) -> bool:
        """Return whether a tick that began then should give way to jobs."""
        return self._jobs.waiting and monotonic() - began > LONGEST_PIECE

    def _prove(self, now: datetime) -> None:
        """Save something now and then: a full disk is seen before somebody's order is refused."""
        if monotonic() < self._prove_at:
            return
        self._prove_at = monotonic() + PROVE_EVERY
        self._feed.read_up_to(self._engine.save_presence(now, ahead=self._time.ahead()))
        self._proved_at = monotonic()  # first: a probe that reads both in between sees no long silence
        self._proved = True

    def _sleep(self) -> float:
        """Return how many real seconds to wait for a job at most."""
        if self._trouble is not None:
            return RETRY_AFTER
        if self._more:
            return 0.0
        longest = SAVE_TIME_EVERY if isinstance(self._clock, ScaledClock) else LONGEST_SLEEP
        due = min((at for at in (self._next_due, self._engine.due.at) if at is not None), default=None)
        if due is None or not self._clock.speed:
            return longest
        ahead = (due - self._clock.now()).total_seconds() / self._clock.speed
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
            self._engine.save_all(self._clock.now(), ahead=self._time.ahead())
        except Unavailable as error:
            log.warning("the last polls could not be saved: %s", error)


class Health:
    """Whether the service works, and whether it takes requests."""

    def __init__(self, worker: Worker, deadlines: Deadlines, supervisor: Supervisor) -> None:
        self._worker = worker
        self._deadlines = deadlines
        self._supervisor = supervisor
        self.leaving = False  # owner: the guest loop, which sets it once, when the server stops

    def unhealthy(self) -> str | None:
        """Return why the service does not work, so that it should be restarted."""
        if not self._worker.alive:
            return "the worker has ended"
        if self._supervisor.failing()[BackgroundTask.WORKER]:
            return "the worker keeps failing; the log says why"
        return None

    def unready(self) -> str | None:
        """Return why requests should go elsewhere for now."""
        if self.leaving:
            return "stopping"
        if self._deadlines.trouble is not None:
            return "the database does not answer, polls go on being answered; the log says why"
        return self._worker.trouble or self._supervisor.trouble()

    def writable(self) -> bool:
        """Return whether something could be saved when that was last tried."""
        return self._worker.writable and self._deadlines.trouble is None

    def silences(self) -> int:
        """Return how often the database has fallen silent."""
        return self._deadlines.silences
