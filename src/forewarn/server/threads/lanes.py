"""The threads that call drivers, so that no driver keeps the worker or a loop waiting.

`LaneQueues` decides; here are the threads that make the calls, the one that waits for what is due next, and
the way of the answers back to the worker. A thread whose call was given up cannot be ended: it is left
behind, and another takes its place. All of them are daemons: nobody waits for them when the server stops, and
after the next start `check` tells what has become of what they were at.
"""

import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from forewarn.control.driver import Driver, DriverLimits, DriverTask, Unknown
from forewarn.control.engine.driver_calls import (
    Answer,
    CallAnswer,
    DriverCall,
    DriverCallCounts,
    Reached,
    Verb,
    perform,
)
from forewarn.core.basic_types import MachineId
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.durations import Durations
from forewarn.server.threads.lane_queues import DEFAULT_BOUNDS, LaneBounds, LaneQueues, PlacedCall
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

# For a driver that is gone, and is not called any more.
_NO_LIMITS = DriverLimits(timeout=timedelta(minutes=1), at_once=1)
# A thread that nobody has needed for so long ends, in seconds.
IDLE = 60.0
# After answers could not be saved, or no thread be started, in seconds.
RETRY_AFTER = 1.0
# For calls that are being made when the server is told to stop, in seconds.
LAST_CALLS = 1.0


class PostJob(Protocol):
    """Has the worker do something."""

    def __call__(self, work: Callable[[], None], /) -> "Future[None]":
        """Return what is done when it is saved, or could not be."""
        ...


class TakeAnswers(Protocol):
    """Takes what drivers have said."""

    def __call__(self, answers: Sequence[CallAnswer], /) -> None:
        """Save what follows from answers."""
        ...


class Lanes:
    """Makes the calls of drivers that take their time."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        *,
        post: PostJob,
        take: TakeAnswers,
        real_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        bounds: LaneBounds = DEFAULT_BOUNDS,
    ) -> None:
        self._drivers = drivers
        self._post = post
        self._take = take
        self._real_now = real_now
        self._monotonic = monotonic
        # The next three are set before any thread is started.
        self.supervisor = Supervisor()  # until it is given the server's
        # Called with every answer, of hosts and of steps: what does it tell of whether hosts are reached?
        self.reached: Callable[[CallAnswer], None] = lambda _: None
        self.planned: Callable[[CallAnswer], None] = lambda _: None  # told of moves of plans
        self._most_threads = bounds.calls
        self._news = threading.Condition()
        self._queues = LaneQueues(self._limits, bounds=bounds)  # lock: self._news
        self._calls: queue.SimpleQueue[PlacedCall] = queue.SimpleQueue()  # has a lock of its own
        self._idle = 0  # threads that wait for a call; lock: self._news
        self._timer: threading.Thread | None = None  # lock: self._news
        self._outbox: list[CallAnswer] = []  # what the worker has still to take; lock: self._news
        self._is_posted = False  # whether it knows that; lock: self._news
        self._unsaved: list[CallAnswer] = []  # lock: self._news
        self._retry_at: float | None = None  # lock: self._news
        # When calls are tried again for which there was no thread. Lock: self._news.
        self._look_at: float | None = None
        self._stopped = False  # lock: self._news
        self._answered: Counter[tuple[str, ...]] = Counter()  # lock: self._news
        self._durations = Durations()

    def start(self) -> None:
        """Start the thread that keeps time; without it here, the first call does."""
        with self._news:
            self._start_timer()

    def submit(self, call: DriverCall) -> None:
        """Hand a call over; never waits."""
        wait = None if call.at is None else (call.at - self._real_now()).total_seconds()
        with self._news:
            if self._stopped:
                return
            self._queues.add(call, now=self._monotonic(), wait=wait)
            self._look()
            self._news.notify_all()

    def withdraw(self, attempt: AttemptId) -> None:
        """Take back the `begin` of an attempt that runs no more, if it has not been made."""
        with self._news:
            self._queues.withdraw(attempt)

    def wake(self, machine: MachineId) -> None:
        """Ask about a machine's step now: its hypervisor has news of it, which `check` finds out."""
        with self._news:
            self._queues.wake(machine)
            self._look()

    def stop(self) -> None:
        """Make no more calls; those being made get a short while, and those that hang none."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
            self._news.wait_for(lambda: not self._queues.running.total(), LAST_CALLS)

    def counts(self) -> DriverCallCounts:
        """Count what was called, and what is being called."""
        with self._news:
            return DriverCallCounts(
                answered=dict(self._answered),
                durations=self._durations.seen(),
                running=dict(self._queues.running),
                hung=dict(self._queues.hung),
            )

    def _limits(self, task: DriverTask) -> DriverLimits:
        limits = self._drivers[task.driver].limits or _NO_LIMITS
        at_once = task.host.at_once if task.host is not None else None
        return limits if at_once is None else replace(limits, at_once=at_once)

    def _thread(self, task: BackgroundTask, work: Callable[[], None]) -> threading.Thread | None:
        """Start a thread, unless the process may have no more; it is tried again later."""
        run = partial(self.supervisor.run, task, work)
        thread = threading.Thread(target=run, name=f"forewarn-{task}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.error("no thread for calls of drivers: %s", error)  # noqa: TRY400 - it is no bug of ours
            return None
        return thread

    # With the lock held

    def _look(self) -> None:
        """Begin what may begin now, and hand over what was answered."""
        now = self._monotonic()
        self._start_timer()
        self._queues.pass_time(now)
        self._look_at = None
        while not self._stopped and self._queues.has_next() and self._take_thread(now):
            if (placed := self._queues.next(now)) is not None:
                self._calls.put(placed)
        self._hand_over(self._queues.take_answers())

    def _take_thread(self, now: float) -> bool:
        """Take a thread for a call, before it counts as being made; return whether there is one."""
        if self._idle:
            self._idle -= 1
            return True
        if self._thread(BackgroundTask.LANE, self._make_calls) is not None:
            return True
        self._look_at = now + RETRY_AFTER
        return False

    def _start_timer(self) -> None:
        if self._timer is None and not self._stopped:
            self._timer = self._thread(BackgroundTask.LANE_TIMER, self._keep_time)

    def _hand_over(self, answers: Sequence[CallAnswer]) -> None:
        """Let the worker take answers, all that are there by then in one job."""
        for each in answers:
            self._answered[each.call.task.driver, each.call.verb.value, _said(each)] += 1
            self._pass_on(each)
            if each.call.is_planned:
                self.planned(each)
            elif each.call.verb is not Verb.REACH:
                self._outbox.append(each)
        if self._outbox and not self._is_posted:
            self._is_posted = True
            taken: list[CallAnswer] = []
            self._post(partial(self._take_all, taken)).add_done_callback(partial(self._posted, taken))

    def _pass_on(self, answer: CallAnswer) -> None:
        try:
            self.reached(answer)
        except Exception:  # the other answers are still to be handed over
            log.exception("whether a host can be reached could not be noted")

    # On the worker

    def _take_all(self, taken: list[CallAnswer]) -> None:
        with self._news:
            taken += self._outbox
            self._outbox, self._is_posted = [], False
        self._take(taken)

    def _posted(self, taken: Sequence[CallAnswer], done: "Future[None]") -> None:
        """Keep answers that could not be saved, and try again: nothing that a driver said is forgotten."""
        if done.exception() is None:
            return
        log.warning("answers of drivers could not be saved, and are tried again: %s", done.exception())
        with self._news:
            self._unsaved += taken
            self._retry_at = self._monotonic() + RETRY_AFTER
            self._news.notify_all()

    # On threads of their own

    def _make_calls(self) -> None:
        while (placed := self._next_call()) is not None:
            call = placed.call
            began = self._monotonic()
            answer = self._made(call)
            took = self._monotonic() - began
            self._durations.note(call.task.driver, call.verb.value, seconds=took)
            with self._news:
                self._queues.returned(placed, answer)
                self._idle += 1
                self._look()
                self._news.notify_all()
                if self._idle and self._idle + self._queues.running.total() > self._most_threads:
                    self._idle -= 1
                    return  # another has taken its place meanwhile

    def _made(self, call: DriverCall) -> Answer:
        try:
            asked = replace(call, task=replace(call.task, now=self._real_now()))
            return perform(self._drivers[call.task.driver], asked)
        except BaseException as error:
            log.exception("driver %s has tried to end its thread", call.task.driver)
            return Unknown(f"{driver_named(call.task.driver)} broke: {error!r}")

    def _next_call(self) -> PlacedCall | None:
        while True:
            try:
                return self._calls.get(timeout=IDLE)
            except queue.Empty:
                with self._news:
                    if self._idle and self._calls.empty():
                        self._idle -= 1
                        return None

    def _keep_time(self) -> None:
        with self._news:
            while not self._stopped:
                known = (self._queues.next_due(), self._retry_at, self._look_at)
                moments = [each for each in known if each is not None]
                now = self._monotonic()
                wait = max(min(moments) - now, 0.0) if moments else None
                if wait != 0.0:
                    self._news.wait(wait)
                    continue
                if self._retry_at is not None and self._retry_at <= now:
                    self._retry()
                self._look()

    def _retry(self) -> None:
        """Hand answers over again, each by itself: one that nobody can take must not hold up the others."""
        unsaved, self._unsaved, self._retry_at = self._unsaved, [], None
        for each in unsaved:
            self._post(partial(self._take, [each])).add_done_callback(partial(self._posted, [each]))


def _said(answer: CallAnswer) -> str:
    if answer.hangs:
        return "none"
    if isinstance(answer.answer, Reached) and answer.answer.why is not None:
        return "unreached"
    return type(answer.answer).__name__.lower()
