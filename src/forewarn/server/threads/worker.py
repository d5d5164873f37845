"""The worker: the one thread that writes to the store.

The worker takes queued jobs, opens a batch (one database transaction), and runs each job in a savepoint with
the open transaction as its argument (`Batches.run_jobs`). A job that raises is rolled back alone. When the
block of the batch ends, the batch commits and everything in it is durable. Then the worker runs the effects
that jobs registered with `tx.after_commit`, applies the changes to the boards, and answers the callers. An
answer of 200 or 202 therefore always follows the commit. Between batches the engine does the work that is
due. The engine and each `ExclusiveJob` also commit through `Batches.transact`. The times of the guests'
last polls are saved separately (`Store.save_activity`).

Two others write to the store: the start before the worker runs (migration, service time, a restored backup,
the fleet file), and commands that use a store without a server (tokens, backup, copy).
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
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.errors import RETRY_ADVICE, Unavailable, Uncertain
from forewarn.server.threads.batches import Batches, Outcome
from forewarn.server.threads.jobs import Job, Jobs, Turn
from forewarn.server.threads.time_keeping import SAVE_TIME_EVERY, TimeWatch
from forewarn.store.opening.deadlines import Deadlines
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

# All times are real seconds.

# The longest sleep. Within it the worker notices a jump of the system clock and saves sent notices.
LONGEST_SLEEP = 5.0
# After a fault of the store.
RETRY_AFTER = 1.0
# How often the worker proves that the store can be written and reads changes that others committed. The sleep
# must not be longer.
PROVE_EVERY = LONGEST_SLEEP
# A worker without a proof for this long hangs, in the store or in a job.
HANGS_AFTER = 6 * PROVE_EVERY


# Jobs in one batch. More jobs gain little, and the first caller waits for the last job.
MOST_TOGETHER = 64
# A batch commits after this time even if more jobs wait.
LONGEST_BATCH = 0.05
# Jobs that were queued together run before the next tick, even in several batches, for at most this time.
LONGEST_WITHOUT_TICK = 0.2
# A tick that has lasted this long gives way to queued jobs; it completes the step that it is in.
LONGEST_PIECE = 0.01
# For this long after a job the worker expects another one.
JOB_EXPECTED_WITHIN = 1.0
# A tick runs at least this often, even if jobs wait: it saves sent notices and detects late external work.
TICK_AT_LEAST_EVERY = 1.0


def _answer(job: Job, outcome: Outcome) -> None:
    if outcome.error is None:
        job.answer.set_result(outcome.result)
    else:
        job.answer.set_exception(outcome.error)


def _fail_unanswered(jobs: Sequence[Job]) -> None:
    """Answer the jobs that the worker took and, because it failed, did not answer."""
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(Uncertain(f"the worker failed; {RETRY_ADVICE}"))


class Worker:
    """Runs queued use cases in batches, and the engine between batches."""

    def __init__(  # noqa: PLR0913 - the worker runs all of control
        self,
        jobs: Jobs,
        *,
        batches: Batches,
        engine: Engine,
        answering: IdempotentCalls,
        feed: BoardFeed,
        time: TimeWatch,
        save_first: Callable[[], None] = lambda: None,
    ) -> None:
        """Take `save_first`, which saves what later decisions depend on, before each batch and tick."""
        self._jobs = jobs
        self._batches = batches
        self._engine = engine
        self._answering = answering
        self._feed = feed
        self._time = time
        self._clock = time.clock
        self._save_first = save_first
        self._thread: threading.Thread | None = None  # owner: the guest loop, which starts it
        # Owner of the following values: the worker. Probes read the last three.
        self._next_due: datetime | None = None
        self._tick_at = 0.0  # when a tick runs even if nothing is due
        self._ticked_at = 0.0  # the end of the last tick
        self._job_at = -JOB_EXPECTED_WITHIN  # the end of the last jobs
        self._more = False  # whether the last tick left work for the next
        self._prove_at = monotonic()
        self._trouble: str | None = None
        self._proved = True  # whether the last attempt to write succeeded
        self._proved_at = monotonic()

    def start(self, supervisor: Supervisor) -> None:
        """Start the worker's thread."""
        self._thread = threading.Thread(
            target=self._run_thread, args=(supervisor,), name="forewarn-worker", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the worker's thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def trouble(self) -> str | None:
        """Why the store cannot be written now; None if it can."""
        if self._trouble is None and not self.writable:
            return f"nothing has been saved for {monotonic() - self._proved_at:.0f} seconds"
        return self._trouble

    @property
    def writable(self) -> bool:
        """Whether the store could be written a short while ago."""
        return self._proved and monotonic() - self._proved_at <= HANGS_AFTER

    def stop(self) -> None:
        """Finish the queued jobs, save the state that is only in memory, and end the thread."""
        self._jobs.end()
        if self._thread is not None:
            self._thread.join()

    def _run_thread(self, supervisor: Supervisor) -> None:
        try:
            supervisor.run(BackgroundTask.WORKER, self._work)
        finally:
            self._jobs.abandon()

    def _work(self) -> None:
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
        """Run one batch of jobs, return the others to the queue, and tick if something is due."""
        mine = jobs
        try:
            done = self.do(jobs)
            if done < len(jobs):
                self._jobs.put_back(jobs[done:], after=jobs[done - 1])
                mine = jobs[:done]
                if monotonic() < self._ticked_at + LONGEST_WITHOUT_TICK:
                    return
            if self.may_be_due():
                self.tick()
            self._jobs.follow_up.ticked()
        finally:
            _fail_unanswered(mine)

    def do(self, jobs: Sequence[Job]) -> int:
        """Run jobs in one batch for a limited time; return how many were done."""
        try:
            # Before the jobs: a job may start work that a jump of the clock has made due.
            self._time.look()
            self._save_first()
            outcomes = self._run_jobs(jobs)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            outcomes = [Outcome(error=error)]
        if any(isinstance(each.error, Unavailable) for each in outcomes) and self._proved:
            self._prove_at = self._tick_at = monotonic()  # check whether every write fails
        self.catch_up()
        if self.may_be_due():
            self._jobs.follow_up.owe()
        for job, outcome in zip(jobs, outcomes, strict=False):
            _answer(job, outcome)
        self._job_at = monotonic()
        return len(outcomes)

    def _run_jobs(self, jobs: Sequence[Job]) -> list[Outcome]:
        if isinstance(
            jobs[0].work, ExclusiveJob
        ):  # it is the only job; `do` turns its exception into its outcome
            return [Outcome(jobs[0].work.work(self._batches.transact))]
        until = monotonic() + LONGEST_BATCH

        def enough(done: int) -> bool:
            guest_waits = jobs[done - 1].turn is not Turn.GUESTS and self._jobs.guest_waits
            return guest_waits or monotonic() > until

        prefetches = [job.prefetch for job in jobs if job.prefetch is not None]
        work = [
            job.work for job in jobs if not isinstance(job.work, ExclusiveJob)
        ]  # `Jobs.take` mixes in none
        return self._batches.run_jobs(work, prefetches=prefetches, enough=enough)

    def catch_up(self) -> None:
        """Apply committed changes to the boards, so that a caller sees them when it is answered."""
        try:
            self._feed.catch_up()
        except Unavailable as error:
            if self._trouble is None:  # the reason is logged already otherwise
                log.warning("boards are behind: %s", error)
        except Exception:
            # The next tick tries again. A worker that ended would stop the whole server.
            log.exception("boards are behind")

    def may_be_due(self) -> bool:
        """Whether a tick may have work. This reads nothing from the store."""
        if monotonic() >= self._tick_at:
            return True
        return self._trouble is None and (self._more or self._engine.may_be_due(self._clock.now()))

    def tick(self) -> None:
        """Do the work that is due, or record why it cannot be done."""
        began = monotonic()
        self._tick_at = began + TICK_AT_LEAST_EVERY
        try:
            now = self._time.look()
            self._save_first()
            self._prove(now)
            # Old answers are pruned only when the worker is otherwise idle.
            busy = self._jobs.waiting or began - self._job_at < JOB_EXPECTED_WITHIN
            self._more = self._engine.tick(
                now, should_yield=lambda: self._jobs.waiting and monotonic() - began > LONGEST_PIECE, few=busy
            ) or (not self._jobs.waiting and self._answering.prune(self._batches.transact))
            self._feed.catch_up()
            self._next_due = self._engine.known_due(now)
            # A tick without work has written nothing, so it proves nothing.
            self._proved = self._proved or self._more
            if self._proved:
                self._recovered()
        except Stuck as error:
            self._failed("some orders cannot continue", detail=str(error))
        except Unavailable as error:
            self._proved = False
            self._failed("the store cannot be written; polls are still answered", detail=str(error))
        except Exception:
            log.exception("a tick failed")
            self._failed("a tick failed")
        finally:
            self.catch_up()  # a tick that fails may have committed a part of its work
            self._ticked_at = monotonic()

    def _prove(self, now: datetime) -> None:
        """Write to the store at intervals, to notice a full disk before an order is refused."""
        if monotonic() < self._prove_at:
            return
        self._prove_at = monotonic() + PROVE_EVERY
        self._feed.read_up_to(self._engine.save_presence(now, ahead=self._time.ahead()))
        self._proved_at = monotonic()  # first, because a probe may read both in between
        self._proved = True

    def _sleep(self) -> float:
        """Return how many seconds to wait for a job at most."""
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

    def _failed(self, why: str, *, detail: str = "") -> None:
        """Record a failure. Only the log gets the detail, because probes need no token."""
        if self._trouble is None:
            log.error("%s", f"{why}: {detail}" if detail else why)
        self._trouble = f"{why}; the log says why"

    def _recovered(self) -> None:
        if self._trouble is not None:
            log.info("the store can be written again and all due work is done")
        self._trouble = None

    def _save_all(self) -> None:
        try:
            self._engine.save_all(self._clock.now(), ahead=self._time.ahead())
        except Unavailable as error:
            log.warning("the last polls could not be saved: %s", error)


class Health:
    """Answers the probes: whether the server works, and whether it takes requests."""

    def __init__(self, worker: Worker, deadlines: Deadlines, supervisor: Supervisor) -> None:
        self._worker = worker
        self._deadlines = deadlines
        self._supervisor = supervisor
        self.stopping = False  # owner: the guest loop, which sets it once

    def unhealthy(self) -> str | None:
        """Return why the server must be restarted; None if it works."""
        if not self._worker.alive:
            return "the worker has ended"
        if self._supervisor.failing()[BackgroundTask.WORKER]:
            return "the worker keeps failing; the log says why"
        return None

    def unready(self) -> str | None:
        """Return why requests should go to another server for now; None if this one takes them."""
        if self.stopping:
            return "stopping"
        if self._deadlines.trouble is not None:
            return "the database does not answer; polls are still answered; the log says why"
        return self._worker.trouble or self._supervisor.trouble()

    def writable(self) -> bool:
        """Whether the last attempt to write to the store succeeded."""
        return self._worker.writable and self._deadlines.trouble is None

    def silences(self) -> int:
        """Return how often the database has stopped answering."""
        return self._deadlines.silences
