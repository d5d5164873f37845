"""Hooks of the settings: how they are run, and those for work on hosts as a driver of host steps.

A hook is called with `begin`, and with `check` as long as it says that it is not done. It is a process of its
own, watched here; its caller is answered soon, however long the hook takes.

A server that follows one that was killed asks hooks with `check`: a hook may have gone on meanwhile, and
forewarn never begins it twice for an attempt.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.clock import monotonic
from forewarn.config import HookSettings
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HostTask
from forewarn.core.time_formats import format_span
from forewarn.drivers.driver_setup import remember
from forewarn.drivers.program_steps import (
    BEGIN,
    CHECK,
    ProgramAnswer,
    StateWord,
    as_json,
    no_answer,
    read_answer,
)
from forewarn.programs.program import TRY_AGAIN, Exited, Invocation, NotRun, Outcome, TimedOut
from forewarn.programs.watched_program import WatchedProgram, clean_environment

log = logging.getLogger(__name__)

# A hook that takes less is answered for at once, in seconds.
SHORT = 1.0
# One that runs is looked at after a tenth of the time that it has taken, within these bounds, in seconds.
SOONEST, LATEST = 1.0, 30.0
# How it ended is remembered of so many hooks: what was answered may not have been saved, and is asked again.
REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A hook of one attempt."""

    key: Hashable  # what names it for good
    name: str  # whose it is, for the log
    now: datetime
    invocation: Callable[[str], Invocation]  # of each call
    timeout: timedelta  # of each call


@dataclass(frozen=True, slots=True)
class _HookRun:
    call: str
    run: WatchedProgram
    timeout: timedelta


class HookRuns:
    """Runs hooks, and remembers how they ended."""

    def __init__(self, *, remembered: int | None = None) -> None:
        """Take of how many hooks is remembered how they ended, those that run among them."""
        self._remembered = remembered
        self._lock = threading.Lock()
        self._runs: OrderedDict[Hashable, _HookRun] = OrderedDict()  # guarded by the lock

    def begin(self, hook: Hook) -> Begun:
        """Run a hook."""
        with self._lock:
            started = self._started(hook, BEGIN)
        answer = self._answer(hook, started)
        return Unknown("the hook says that it has not begun") if isinstance(answer, NotBegun) else answer

    def check(self, hook: Hook) -> Begun | NotBegun:
        """Look at a hook that runs; without one, have the hook say what has become of its work."""
        with self._lock:  # of two threads that check it one runs it
            known = self._runs.get(hook.key) or self._started(hook, CHECK)
        return self._answer(hook, known)

    def end(self, hook: Hook) -> CancelAnswer:
        """End a hook with all that it has started here; work that it has left elsewhere goes on.

        No hook is asked to call its work off: one that does the same whatever it is asked would do it again.
        So what this server has not begun, and what went on after `begin`, is asked after until it is over.
        """
        known = self.find(hook.key)
        if known is None or known.call != BEGIN:
            return TooLate()
        outcome = known.run.end()
        if outcome is None:
            return Unknown("the hook was told to end, and has not ended yet")
        is_ended = isinstance(outcome, TimedOut) or isinstance(_said(hook, known, outcome), Failed)
        return Cancelled() if is_ended else TooLate()

    def start(self, hook: Hook, *, ending: Hashable) -> None:
        """Run a hook once another one has been ended, and do not wait for anything."""
        with self._lock:
            self._started(hook, BEGIN, ending=self._runs.get(ending))

    def is_running(self, key: Hashable) -> bool:
        """Return whether a hook runs, for all that is remembered."""
        known = self.find(key)
        return known is not None and known.run.wait(0) is None

    def forget(self, key: Hashable) -> None:
        """Forget a hook that nobody will ask about any more; one that runs goes on."""
        with self._lock:
            self._runs.pop(key, None)

    def find(self, key: Hashable) -> _HookRun | None:
        """Return a run that is remembered."""
        with self._lock:
            return self._runs.get(key)

    def _started(self, hook: Hook, call: str, *, ending: _HookRun | None = None) -> _HookRun:
        """Run a hook; with the lock held, which waits for nothing: the hook has a thread of its own."""
        run = WatchedProgram(
            hook.invocation(call), timeout=hook.timeout, ending=None if ending is None else ending.run
        )
        started = _HookRun(call, run, hook.timeout)
        remember(self._runs, hook.key, started, most=self._remembered or REMEMBERED)
        return started

    def _answer(self, hook: Hook, known: _HookRun) -> Begun | NotBegun:
        outcome = known.run.wait(SHORT)
        if outcome is None:
            taken = monotonic() - known.run.began_at
            return Running(hook.now + timedelta(seconds=min(max(taken / 10, SOONEST), LATEST)))
        said = _said(hook, known, outcome)
        span = format_span(round(monotonic() - known.run.began_at, 1))
        log.info("hook %s of %s: %s after %s", known.call, hook.name, type(said).__name__.lower(), span)
        if not isinstance(said, Done | Failed):
            with self._lock:  # the next time the hook itself is asked
                if self._runs.get(hook.key) is known:
                    del self._runs[hook.key]
        return said


def _said(hook: Hook, known: _HookRun, outcome: Outcome) -> Begun | NotBegun:
    """Return what the end of a hook says of its step."""
    if isinstance(outcome, NotRun) and known.call == BEGIN:
        return Failed(outcome.why)
    if not isinstance(outcome, Exited) or outcome.code < 0:
        return Unknown(no_answer(outcome, "the hook", known.call, timeout=known.timeout))
    answer = read_answer(outcome.output) or ProgramAnswer()
    match outcome.code:
        case 0:
            return _as_driver(hook, answer, answer.state or "done")
        case code if code == TRY_AGAIN:
            return _as_driver(hook, answer, "unknown" if answer.state == "unknown" else "running")
        case code:
            return Failed(answer.why or outcome.last_line or f"the hook exited with {code}")


def _as_driver(hook: Hook, answer: ProgramAnswer, state: StateWord) -> Begun | NotBegun:
    match answer.as_state(state, now=hook.now):
        case Done():
            return Done()
        case Cancelled() | TooLate():
            return Unknown(f"the hook says {state}, which it was not asked")
        case said:
            return said


class HookDriver:
    """Runs hooks."""

    # Its calls wait for nothing but a short hook: hooks have a time-out of their own.
    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=4)

    def __init__(self, settings: HookSettings) -> None:
        self._settings = settings
        self._runs = HookRuns()

    def begin(self, task: DriverTask) -> Begun:
        """Run the hook of a task."""
        if task.task is None or not self._settings.command(task.task):
            return Failed(f"there is no hook for {task.task or task.work}: set one in [hooks], then retry")
        answer = self._runs.begin(self._hook(task))
        return self._failed(task, answer) if isinstance(answer, Failed) else answer

    def check(self, task: DriverTask) -> Checked:
        """Look at the hook that runs; without one, have the hook say what has become of its work."""
        if task.task is None or not self._settings.command(task.task):
            return Unknown(f"there is no hook for {task.task or task.work} any more: set one in [hooks]")
        answer = self._runs.check(self._hook(task))
        return self._failed(task, answer) if isinstance(answer, Failed) else answer

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """End the hook with all that it has started here; work that it has left elsewhere goes on."""
        return self._runs.end(self._hook(task))

    def _hook(self, task: DriverTask) -> Hook:
        hook = task.task or HostTask.WORK
        return Hook(
            key=task.id,
            name=task.name,
            now=task.now,
            invocation=lambda call: self._invocation(task, hook, call),
            timeout=self._settings.timeout_of(hook),
        )

    def _invocation(self, task: DriverTask, hook: HostTask, call: str) -> Invocation:
        variables = {
            "FOREWARN_HOOK": hook,
            "FOREWARN_CALL": call,
            "FOREWARN_HOST": task.host.name if task.host is not None else "",
            "FOREWARN_HOST_URI": (task.host.uri or "") if task.host is not None else "",
            "FOREWARN_ORDER": task.order,
            "FOREWARN_ATTEMPT": f"{task.attempt}",
            "FOREWARN_MARK": task.mark,
        }
        return Invocation(
            words=(*self._settings.command(hook), call),
            environment=clean_environment(variables),
            input=as_json(task, call=call),
        )

    def _failed(self, task: DriverTask, answer: Failed) -> Failed:
        return replace(answer, again=task.attempt <= self._settings.retries)
