"""Hooks: the operator's programs that run before, during and after work on hosts and machines.

forewarn calls a hook with `begin`, and with `check` until the hook reports that it is done. The hook is a
process of its own. A call of the driver returns soon, however long the hook takes.

After a crash of the server, the next server calls the hook with `check`, because the hook may have gone on.
forewarn never calls `begin` twice for one attempt.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

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
    as_json,
    as_variables,
    no_answer,
    read_answer,
)
from forewarn.programs.program import TRY_AGAIN, Exited, Invocation, NotRun, Outcome, TimedOut
from forewarn.programs.watched_program import WatchedProgram, clean_environment

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)

# A call waits this long for the hook to end, in seconds.
WAIT_SECONDS = 1.0
# The next check comes after a tenth of the time that the hook has run, within these bounds, in seconds.
SOONEST, LATEST = 1.0, 30.0
# How many outcomes to remember: the server calls again for an answer that it could not save.
REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A hook of one attempt."""

    key: Hashable  # identifies the hook and the attempt
    name: str  # the step, for the log
    now: datetime
    invocation: Callable[[str], Invocation]  # by call
    timeout: timedelta  # of each call


@dataclass(frozen=True, slots=True)
class _HookRun:
    call: str
    program: WatchedProgram
    timeout: timedelta


class HookRuns:
    """Runs hooks and remembers their outcomes."""

    def __init__(self, *, remembered: int) -> None:
        """Take how many hooks to remember, including running ones."""
        self._remembered = remembered
        self._lock = threading.Lock()
        self._runs: OrderedDict[Hashable, _HookRun] = OrderedDict()  # guarded by the lock

    def begin(self, hook: Hook) -> Begun:
        """Run a hook with `begin`."""
        with self._lock:
            run = self._start(hook, BEGIN)
        answer = self._answer(hook, run)
        return Unknown("the hook reports that it has not begun") if isinstance(answer, NotBegun) else answer

    def check(self, hook: Hook) -> Begun | NotBegun:
        """Report on a running hook; if none runs, run the hook with `check`."""
        with self._lock:  # if two threads check, one starts the hook
            run = self._runs.get(hook.key) or self._start(hook, CHECK)
        return self._answer(hook, run)

    def end(self, hook: Hook) -> CancelAnswer:
        """Stop a hook with all its child processes; work that it left elsewhere goes on.

        There is no `cancel` call: a hook that ignores its argument would run its work again. So a hook that
        another server began, or that is past `begin`, is checked until it ends.
        """
        run = self.find(hook.key)
        if run is None or run.call != BEGIN:
            return TooLate()
        outcome = run.program.end()
        if outcome is None:
            return Unknown("the hook was asked to stop and still runs")
        is_ended = isinstance(outcome, TimedOut) or isinstance(_answer_of(hook, run, outcome), Failed)
        return Cancelled() if is_ended else TooLate()

    def start(self, hook: Hook, *, ending: Hashable) -> None:
        """Run a hook after another hook has been stopped, without waiting."""
        with self._lock:
            self._start(hook, BEGIN, ending=self._runs.get(ending))

    def is_running(self, key: Hashable) -> bool:
        """Return whether a hook runs in this process."""
        run = self.find(key)
        return run is not None and run.program.wait(0) is None

    def forget(self, key: Hashable) -> None:
        """Forget a hook; if it runs, it goes on."""
        with self._lock:
            self._runs.pop(key, None)

    def find(self, key: Hashable) -> _HookRun | None:
        """Return the run of a hook in this process."""
        with self._lock:
            return self._runs.get(key)

    def _start(self, hook: Hook, call: str, *, ending: _HookRun | None = None) -> _HookRun:
        """Start a hook in a thread of its own; the caller holds the lock."""
        program = WatchedProgram(
            hook.invocation(call), timeout=hook.timeout, ending=None if ending is None else ending.program
        )
        run = _HookRun(call, program, hook.timeout)
        remember(self._runs, hook.key, run, most=self._remembered)
        return run

    def _answer(self, hook: Hook, run: _HookRun) -> Begun | NotBegun:
        outcome = run.program.wait(WAIT_SECONDS)
        elapsed = monotonic() - run.program.began_at
        if outcome is None:
            return Running(hook.now + timedelta(seconds=min(max(elapsed / 10, SOONEST), LATEST)))
        answer = _answer_of(hook, run, outcome)
        state, span = type(answer).__name__.lower(), format_span(round(elapsed, 1))
        log.info("hook %s of %s: %s after %s", run.call, hook.name, state, span)
        if not isinstance(answer, Done | Failed):
            with self._lock:  # the next check runs the hook again
                if self._runs.get(hook.key) is run:
                    del self._runs[hook.key]
        return answer


def _answer_of(hook: Hook, run: _HookRun, outcome: Outcome) -> Begun | NotBegun:
    """Convert the exit code and the output of a hook to an answer."""
    if isinstance(outcome, NotRun) and run.call == BEGIN:
        return Failed(outcome.why)
    if not isinstance(outcome, Exited) or outcome.code < 0:
        return Unknown(no_answer(outcome, "the hook", run.call, timeout=run.timeout))
    answer = read_answer(outcome.output) or ProgramAnswer()
    match outcome.code:
        case 0:
            state = answer.state or "done"
        case code if code == TRY_AGAIN:
            state = "unknown" if answer.state == "unknown" else "running"
        case code:
            return Failed(answer.why or outcome.last_line or f"the hook exited with {code}")
    match answer.as_state(state, now=hook.now):
        case Done():
            return Done()
        case Cancelled() | TooLate():
            return Unknown(f"the hook answered {run.call} with {state}, which is no answer to {run.call}")
        case converted:
            return converted


class HookDriver:
    """The driver of host tasks that a hook of the settings carries out."""

    # A call waits only for a short hook. Each hook has a timeout of its own.
    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=4)

    def __init__(self, settings: HookSettings) -> None:
        self._settings = settings
        self._runs = HookRuns(remembered=REMEMBERED)

    def begin(self, task: DriverTask) -> Begun:
        """Run the hook of a task."""
        answer = self._call(task, self._runs.begin)
        missing = f"there is no hook for {task.task or task.work}: set one in [hooks], then retry"
        return answer or Failed(missing)

    def check(self, task: DriverTask) -> Checked:
        """Report on the hook of a task."""
        answer = self._call(task, self._runs.check)
        return answer or Unknown(f"the hook for {task.task or task.work} was removed: set one in [hooks]")

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Stop the hook with all its child processes; work that it left elsewhere goes on."""
        return self._runs.end(self._hook(task))

    def _hook(self, task: DriverTask) -> Hook:
        hook = task.task or HostTask.WORK

        def invocation(call: str) -> Invocation:
            return Invocation(
                words=(*self._settings.command(hook), call),
                environment=clean_environment({**as_variables(task, call=call), "FOREWARN_HOOK": hook}),
                input=as_json(task, call=call),
            )

        return Hook(
            key=task.id,
            name=task.name,
            now=task.now,
            invocation=invocation,
            timeout=self._settings.timeout_of(hook),
        )

    def _call(self, task: DriverTask, call: Callable[[Hook], Answer]) -> Answer | Failed | None:
        """Call the hook of a task; return None if there is none."""
        if task.task is None or not self._settings.command(task.task):
            return None
        answer = call(self._hook(task))
        if isinstance(answer, Failed):
            return replace(answer, again=task.attempt <= self._settings.retries)
        return answer
