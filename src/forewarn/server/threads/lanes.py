"""The threads that call drivers, so that a slow driver blocks neither the worker nor a loop.

`LaneQueues` decides which call is made next. This module has the threads that make the calls, the timer, and
the code that returns answers to the worker. A thread cannot be ended: after a timeout it is abandoned and a
new thread replaces it. All these threads are daemons, so the server stops without waiting for them. After the
next start, `check` asks the driver about the unfinished attempts.
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
from typing import TypeAlias

from forewarn.control.driver import Driver, DriverLimits, DriverTask, Unknown
from forewarn.control.engine.driver_calls import (
    Answer,
    CallAnswer,
    DriverCall,
    DriverCallCounts,
    Reached,
    Verb,
    label_of,
    perform,
)
from forewarn.core.basic_types import MachineId
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.durations import Durations
from forewarn.server.threads.lane_queues import DEFAULT_BOUNDS, LaneBounds, LaneQueues, PlacedCall
from forewarn.supervision import BackgroundTask, Supervisor

log = logging.getLogger(__name__)

# For a driver that is no longer configured.
_NO_LIMITS = DriverLimits(timeout=timedelta(minutes=1), at_once=1)
# An idle thread ends after this time, in seconds.
IDLE = 60.0
# After answers could not be saved, or a thread could not be started, in seconds.
RETRY_AFTER = 1.0
# How long the stop waits for running calls, in seconds.
STOP_SECONDS = 1.0

# Runs a function on the worker; the future is done when its changes are saved or could not be.
PostJob: TypeAlias = Callable[[Callable[[], None]], "Future[None]"]


class Lanes:
    """Calls drivers on threads of their own."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        *,
        post: PostJob,
        real_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        bounds: LaneBounds = DEFAULT_BOUNDS,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._drivers = drivers
        self._post = post
        self._real_now = real_now
        self._monotonic = monotonic
        self._supervisor = supervisor or Supervisor()
        # Owner of the three receivers: the start of the server, before any thread runs.
        self._take: Callable[[list[CallAnswer]], None]
        self._reached: Callable[[CallAnswer], None]
        self._planned: Callable[[CallAnswer], None]
        self._most_threads = bounds.calls
        self._news = threading.Condition()
        self._queues = LaneQueues(self._limits, bounds=bounds)  # lock: self._news
        self._calls: queue.SimpleQueue[PlacedCall] = queue.SimpleQueue()  # has its own lock
        self._idle = 0  # threads that wait for a call; lock: self._news
        self._timer: threading.Thread | None = None  # lock: self._news
        self._outbox: list[CallAnswer] = []  # answers that the worker has not taken; lock: self._news
        self._is_posted = False  # whether a job that takes them is queued; lock: self._news
        self._unsaved: list[CallAnswer] = []  # lock: self._news
        self._retry_at: float | None = None  # lock: self._news
        self._start_at: float | None = None  # when to try to start a thread again; lock: self._news
        self._stopped = False  # lock: self._news
        self._answered: Counter[tuple[str, ...]] = Counter()  # lock: self._news
        self._durations = Durations()

    def deliver_to(
        self,
        *,
        take: Callable[[list[CallAnswer]], None],
        reached: Callable[[CallAnswer], None],
        planned: Callable[[CallAnswer], None],
    ) -> None:
        """Set the receivers of answers; call this before the first call is submitted.

        `take` runs on the worker and saves the effects of answers about steps. `reached` gets every answer,
        to learn which hosts are reachable. `planned` gets the answers about moves of plans.
        """
        self._take, self._reached, self._planned = take, reached, planned

    def start(self) -> None:
        """Start the timer's thread; otherwise the first call starts it."""
        with self._news:
            self._start_timer()

    def submit(self, call: DriverCall) -> None:
        """Queue a call; never block."""
        wait = None if call.at is None else (call.at - self._real_now()).total_seconds()
        with self._news:
            if self._stopped:
                return
            self._queues.add(call, now=self._monotonic(), wait=wait)
            self._proceed()
            self._news.notify_all()

    def withdraw(self, attempt: AttemptId) -> None:
        """Withdraw the `begin` of an attempt that has ended, if it has not been called yet."""
        with self._news:
            self._queues.withdraw(attempt)

    def wake(self, machine: MachineId) -> None:
        """Check a machine's step now, because its hypervisor reported an event."""
        with self._news:
            self._queues.wake(machine)
            self._proceed()

    def stop(self) -> None:
        """Start no more calls; wait briefly for running calls, but not for calls that hang."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
            self._news.wait_for(lambda: not self._queues.running.total(), STOP_SECONDS)

    def counts(self) -> DriverCallCounts:
        """Count finished and running calls."""
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

    def _start_thread(self, task: BackgroundTask, work: Callable[[], None]) -> threading.Thread | None:
        """Start a thread; return None if the process may have no more threads."""
        run = partial(self._supervisor.run, task, work)
        thread = threading.Thread(target=run, name=f"forewarn-{task}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # Not a bug: no traceback.
            log.error("cannot start a thread for driver calls: %s", error)  # noqa: TRY400
            return None
        return thread

    # With the lock held

    def _proceed(self) -> None:
        """Start the calls that may start now, and pass on the answers."""
        now = self._monotonic()
        self._start_timer()
        self._queues.pass_time(now)
        self._start_at = None
        while not self._stopped and self._queues.has_next() and self._take_thread(now):
            if (placed := self._queues.next(now)) is not None:
                self._calls.put(placed)
        self._pass_on(self._queues.take_answers())

    def _take_thread(self, now: float) -> bool:
        """Reserve a thread for a call before the call counts as running; return whether there is one."""
        if self._idle:
            self._idle -= 1
            return True
        if self._start_thread(BackgroundTask.LANE, self._make_calls) is not None:
            return True
        self._start_at = now + RETRY_AFTER
        return False

    def _start_timer(self) -> None:
        if self._timer is None and not self._stopped:
            self._timer = self._start_thread(BackgroundTask.LANE_TIMER, self._keep_time)

    def _pass_on(self, answers: Sequence[CallAnswer]) -> None:
        """Pass answers to their receivers; one job on the worker takes all that have come by then."""
        for each in answers:
            self._answered[each.call.task.driver, each.call.verb.value, _label(each)] += 1
            try:
                self._reached(each)
            except Exception:  # the other answers must still be passed on
                log.exception("cannot note whether a host is reachable")
            if each.call.is_planned:
                self._planned(each)
            elif each.call.verb is not Verb.REACH:
                self._outbox.append(each)
        if self._outbox and not self._is_posted:
            self._is_posted = True
            taken: list[CallAnswer] = []
            self._post(partial(self._take_all, taken)).add_done_callback(partial(self._posted, taken))

    # On the worker

    def _take_all(self, taken: list[CallAnswer]) -> None:
        with self._news:
            taken += self._outbox
            self._outbox, self._is_posted = [], False
        self._take(taken)

    def _posted(self, taken: Sequence[CallAnswer], done: "Future[None]") -> None:
        """Keep answers that could not be saved and retry, because a driver may not repeat them."""
        if done.exception() is None:
            return
        log.warning("cannot save answers of drivers, will retry: %s", done.exception())
        with self._news:
            self._unsaved += taken
            self._retry_at = self._monotonic() + RETRY_AFTER
            self._news.notify_all()

    # On the threads of lanes

    def _make_calls(self) -> None:
        while (placed := self._next_call()) is not None:
            call = placed.call
            began = self._monotonic()
            answer = self._make_call(call)
            self._durations.note(call.task.driver, call.verb.value, seconds=self._monotonic() - began)
            with self._news:
                self._queues.returned(placed, answer)
                self._idle += 1
                self._proceed()
                self._news.notify_all()
                if self._idle and self._idle + self._queues.running.total() > self._most_threads:
                    self._idle -= 1
                    return  # a new thread replaced this one while its call hung

    def _make_call(self, call: DriverCall) -> Answer:
        try:
            asked = replace(call, task=replace(call.task, now=self._real_now()))
            return perform(self._drivers[call.task.driver], asked)
        except BaseException as error:
            log.exception("driver %s tried to end its thread", call.task.driver)
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
                known = (self._queues.next_due(), self._retry_at, self._start_at)
                moments = [each for each in known if each is not None]
                now = self._monotonic()
                wait = max(min(moments) - now, 0.0) if moments else None
                if wait != 0.0:
                    self._news.wait(wait)
                    continue
                if self._retry_at is not None and self._retry_at <= now:
                    self._retry()
                self._proceed()

    def _retry(self) -> None:
        """Save answers again, each in its own job, so that one that fails does not block the others."""
        unsaved, self._unsaved, self._retry_at = self._unsaved, [], None
        for each in unsaved:
            self._post(partial(self._take, [each])).add_done_callback(partial(self._posted, [each]))


def _label(answer: CallAnswer) -> str:
    if answer.hangs:
        return "none"
    if isinstance(answer.answer, Reached) and answer.answer.why is not None:
        return "unreached"
    return label_of(answer.answer)
