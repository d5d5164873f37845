"""Supervision of background tasks: one that fails unexpectedly is logged, counted and started again."""

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

# A task that has failed so often, without being sound in between, keeps failing.
KEEPS_FAILING = 3


class BackgroundTask(StrEnum):
    """All threads and tasks that run beside the serving, as logs, probes and metrics name them."""

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
    """How failing tasks are started again, in real seconds."""

    first: float = 0.1  # pause after the first failure; then twice as long each time
    longest: float = 30.0
    # A task that has run for so long is sound. Longer than a call of a webhook or a look at the lock takes.
    sound_after: float = 20.0


@dataclass(slots=True, eq=False)
class _Life:
    """A task that is supervised now."""

    task: BackgroundTask
    counts_for_readiness: bool
    failures: int = 0  # one after another
    began_at: float | None = None  # None: it pauses after a failure


class Supervisor:
    """Runs background tasks, and starts those again that fail. Any thread may use it."""

    def __init__(
        self, *, pace: RestartPace | None = None, monotonic: Callable[[], float] = monotonic
    ) -> None:
        self._pace = pace or RestartPace()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._restarts: Counter[BackgroundTask] = Counter()  # lock: self._lock
        self._lives: set[_Life] = set()  # lock: self._lock, also for what is in them
        self._stopping = threading.Event()
        self._stopped = Signal()

    def run(self, task: BackgroundTask, work: Callable[[], None]) -> None:
        """Run a task on this thread until it returns, or fails once more after `stop`."""
        with self._living(task) as life:
            while True:
                is_last = self._begin(life)
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 - SystemExit, too, would end a thread silently
                    pause = self._fail(life, error)
                else:
                    return
                if is_last:
                    return
                self._stopping.wait(pause)

    async def run_async(
        self, task: BackgroundTask, work: Callable[[], Awaitable[None]], *, counts_for_readiness: bool = True
    ) -> None:
        """Run a task on this loop until it returns, is cancelled, or fails once more after `stop`."""
        with self._living(task, counts_for_readiness=counts_for_readiness) as life:
            while True:
                is_last = self._begin(life)
                try:
                    await work()
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as error:
                    if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                        raise
                    pause = self._fail(life, error)
                else:
                    return
                if is_last:
                    return
                await self._pause_async(pause)

    def stop(self) -> None:
        """End pauses. A task that fails from now on is not started again."""
        self._stopping.set()
        self._stopped.send()

    def restarts(self) -> Mapping[str, int]:
        """Return how often each task was started again."""
        with self._lock:
            return {task: self._restarts[task] for task in BackgroundTask}

    def failing(self) -> Mapping[str, int]:
        """Return how many of each task keep failing."""
        with self._lock:
            failing = Counter(life.task for life in self._lives if self._keeps_failing(life))
        return {task: failing[task] for task in BackgroundTask}

    def trouble(self) -> str | None:
        """Return which tasks keep failing that requests rely on, if there are any."""
        with self._lock:
            failing = {
                life.task for life in self._lives if life.counts_for_readiness and self._keeps_failing(life)
            }
        if not failing:
            return None
        return f"background task {', '.join(sorted(failing))} keeps failing; the log says why"

    @contextmanager
    def _living(self, task: BackgroundTask, *, counts_for_readiness: bool = True) -> Iterator[_Life]:
        life = _Life(task, counts_for_readiness)
        with self._lock:
            self._lives.add(life)
        try:
            yield life
        finally:
            with self._lock:
                self._lives.discard(life)

    def _begin(self, life: _Life) -> bool:
        """Note that a task is started; return whether that is the last time."""
        with self._lock:
            if life.failures:
                self._restarts[life.task] += 1
            life.began_at = self._monotonic()
        return self._stopping.is_set()

    def _fail(self, life: _Life, error: BaseException) -> float:
        """Note that a task has failed; return how long it pauses."""
        with self._lock:
            if self._is_sound(life):
                life.failures = 0
            life.failures += 1
            life.began_at = None
            pause = min(self._pace.longest, self._pace.first * 2.0 ** min(life.failures - 1, 60))
        log.error(
            "background task %s failed, and is started again in %s",
            life.task,
            format_span(pause),
            exc_info=error,
        )
        return pause

    def _is_sound(self, life: _Life) -> bool:
        return life.began_at is not None and self._monotonic() - life.began_at >= self._pace.sound_after

    def _keeps_failing(self, life: _Life) -> bool:
        if self._is_sound(life):
            life.failures = 0
        return life.failures >= KEEPS_FAILING

    async def _pause_async(self, seconds: float) -> None:
        woken = asyncio.Event()
        with self._stopped.listening(waking(woken)), suppress(TimeoutError):
            if not self._stopping.is_set():
                await asyncio.wait_for(woken.wait(), seconds)


def _is_cancelled() -> bool:
    """Return whether this task is to end; else something that it awaited was cancelled."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
