"""Supervision of background tasks: a task that fails is logged, counted and restarted."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

from forewarn.clock import monotonic
from forewarn.core.time_formats import format_span
from forewarn.signals import Signal, waking

log = logging.getLogger(__name__)

# A task with this many consecutive failures makes the server unready.
KEEPS_FAILING = 3


class BackgroundTask(StrEnum):
    """The background threads and tasks, with their names in logs, probes and metrics."""

    DESCRIPTORS = "descriptors"
    HYPERVISORS = "hypervisors"
    LANE = "lane"
    LANE_TIMER = "lane-timer"
    LOCK = "lock"
    OPERATOR_PORT = "operator-port"
    PROBER = "prober"
    REACHING = "reaching"
    READ = "read"
    RELOAD = "reload"
    WATCHDOG = "watchdog"
    WEBHOOK = "webhook"
    WEBHOOKS = "webhooks"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPace:
    """The pauses before failed tasks are restarted, in real seconds."""

    first: float = 0.1  # after the first failure; each further failure doubles it
    longest: float = 30.0
    # A run of this length ends a series of failures. A call of a webhook or a lock renewal is shorter.
    sound_after: float = 20.0


@dataclass(slots=True, eq=False)
class _Run:
    """A task that is being supervised."""

    task: BackgroundTask
    counts_for_readiness: bool
    failures: int = 0  # consecutive
    began_at: float | None = None  # None during the pause after a failure


class Supervisor:
    """Runs background tasks and restarts those that fail. Thread-safe."""

    def __init__(
        self, *, pace: RestartPace | None = None, monotonic: Callable[[], float] = monotonic
    ) -> None:
        self._pace = pace or RestartPace()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._restarts: Counter[BackgroundTask] = Counter()  # lock: self._lock
        self._runs: set[_Run] = set()  # lock: self._lock, also for the fields of the elements
        self._stopping = threading.Event()
        self._stopped = Signal()

    def run(self, task: BackgroundTask, work: Callable[[], None]) -> None:
        """Run a task on this thread until it returns, or until it fails after `stop`."""
        with self._supervised(task) as run:
            while True:
                is_last = self._begin(run)
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 - SystemExit, too, would end a thread silently
                    pause = self._fail(run, error)
                else:
                    return
                if is_last:
                    return
                self._stopping.wait(pause)

    async def run_async(
        self, task: BackgroundTask, work: Callable[[], Awaitable[None]], *, counts_for_readiness: bool = True
    ) -> None:
        """Run a task on this loop until it returns, is cancelled, or fails after `stop`."""
        with self._supervised(task, counts_for_readiness=counts_for_readiness) as run:
            while True:
                is_last = self._begin(run)
                try:
                    await work()
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as error:
                    if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                        raise
                    pause = self._fail(run, error)
                else:
                    return
                if is_last:
                    return
                await self._pause_async(pause)

    def stop(self) -> None:
        """End pauses, and do not restart tasks that fail from now on."""
        self._stopping.set()
        self._stopped.send()

    def restarts(self) -> Mapping[str, int]:
        """Return how often each task was restarted."""
        with self._lock:
            return {task: self._restarts[task] for task in BackgroundTask}

    def failing(self) -> Mapping[str, int]:
        """Return how many of each task keep failing."""
        with self._lock:
            failing = Counter(run.task for run in self._runs if self._keeps_failing(run))
        return {task: failing[task] for task in BackgroundTask}

    def trouble(self) -> str | None:
        """Name the failing tasks that requests depend on; None if there are none."""
        with self._lock:
            failing = {
                run.task for run in self._runs if run.counts_for_readiness and self._keeps_failing(run)
            }
        if not failing:
            return None
        return f"background task {', '.join(sorted(failing))} keeps failing; the log says why"

    @contextmanager
    def _supervised(self, task: BackgroundTask, *, counts_for_readiness: bool = True) -> Iterator[_Run]:
        run = _Run(task, counts_for_readiness)
        with self._lock:
            self._runs.add(run)
        try:
            yield run
        finally:
            with self._lock:
                self._runs.discard(run)

    def _begin(self, run: _Run) -> bool:
        """Note the start of a task; return whether this is the last start."""
        with self._lock:
            if run.failures:
                self._restarts[run.task] += 1
            run.began_at = self._monotonic()
        return self._stopping.is_set()

    def _fail(self, run: _Run, error: BaseException) -> float:
        """Note and log a failure; return the pause before the restart."""
        with self._lock:
            if self._is_sound(run):
                run.failures = 0
            run.failures += 1
            run.began_at = None
            pause = min(self._pace.longest, self._pace.first * 2.0 ** min(run.failures - 1, 60))
        log.error("background task %s failed; restart in %s", run.task, format_span(pause), exc_info=error)
        return pause

    def _is_sound(self, run: _Run) -> bool:
        return run.began_at is not None and self._monotonic() - run.began_at >= self._pace.sound_after

    def _keeps_failing(self, run: _Run) -> bool:
        if self._is_sound(run):
            run.failures = 0
        return run.failures >= KEEPS_FAILING

    async def _pause_async(self, seconds: float) -> None:
        woken = asyncio.Event()
        with self._stopped.listening(waking(woken)), suppress(TimeoutError):
            if not self._stopping.is_set():
                await asyncio.wait_for(woken.wait(), seconds)


def _is_cancelled() -> bool:
    """Whether this task itself was cancelled, and not something that it awaited."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
