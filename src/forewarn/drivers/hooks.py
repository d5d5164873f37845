"""The hooks of the settings: commands that the server runs for work on hosts, as a driver of host steps.

A hook is called with `begin`, and with `check` as long as it says that it is not done. It is a process of its
own, watched here; calls of the driver return soon, however long the hook takes. What a server has begun that
was killed, the next one asks with `check` about: a hook may have gone on meanwhile, and is never begun twice
for an attempt by anybody but itself.
"""

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

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
from forewarn.core.model.order import AttemptId
from forewarn.core.moments import format_span
from forewarn.core.words import HostTask
from forewarn.drivers.programs.program_answers import ProgramAnswer, StateWord, read_answer
from forewarn.drivers.programs.program_runs import Exited, Invocation, NotRun, Outcome, ProgramRun, TimedOut
from forewarn.drivers.programs.tasks_as_json import as_json

log = logging.getLogger(__name__)

BEGIN, CHECK = "begin", "check"
# What a program exits with that is to be asked again: EX_TEMPFAIL of sysexits.h.
NOT_YET = 75
# A hook that takes less is answered for at once, in seconds.
SHORT = 1.0
# One that runs is looked at after a tenth of the time that it has taken, within these bounds, in seconds.
SOONEST, LATEST = 1.0, 30.0
# How it ended is remembered of so many hooks: what was answered may not have been saved, and is asked again.
REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class _HookRun:
    call: str
    run: ProgramRun


class HookDriver:
    """Runs hooks."""

    # Its calls wait for nothing but a short hook: hooks have a time-out of their own.
    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=4)

    def __init__(self, settings: HookSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._runs: OrderedDict[AttemptId, _HookRun] = OrderedDict()

    def begin(self, task: DriverTask) -> Begun:
        """Run the hook of a task."""
        if task.task is None or not self._settings.command(task.task):
            return Failed(f"there is no hook for {task.task or task.work}: set one in [hooks], then retry")
        answer = self._answer(task, self._started(task, BEGIN))
        return Unknown("the hook says that it has not begun") if isinstance(answer, NotBegun) else answer

    def check(self, task: DriverTask) -> Checked:
        """Look at the hook that runs; without one, have the hook say what has become of its work."""
        if task.task is None or not self._settings.command(task.task):
            return Unknown(f"there is no hook for {task.task or task.work} any more: set one in [hooks]")
        with self._lock:
            known = self._runs.get(task.id)
        return self._answer(task, known or self._started(task, CHECK))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """End the hook with all that it has started here; work that it has left elsewhere goes on.

        No hook is asked to call its work off: one that does the same whatever it is asked would do it again.
        So what this server has not begun, and what went on after `begin`, is asked after until it is over.
        """
        with self._lock:
            known = self._runs.get(task.id)
        if known is None or known.call != BEGIN:
            return TooLate()
        outcome = known.run.end()
        if outcome is None:
            return Unknown("the hook was told to end, and has not ended yet")
        is_ended = isinstance(outcome, TimedOut) or isinstance(self._said(task, BEGIN, outcome), Failed)
        return Cancelled() if is_ended else TooLate()

    def _started(self, task: DriverTask, call: str) -> _HookRun:
        started = _HookRun(call, ProgramRun(self._invocation(task, call)))
        with self._lock:
            self._runs[task.id] = started
            while len(self._runs) > REMEMBERED:
                self._runs.popitem(last=False)
        return started

    def _invocation(self, task: DriverTask, call: str) -> Invocation:
        hook = task.task or HostTask.WORK
        return Invocation(
            words=(*self._settings.command(hook), call),
            variables={
                "FOREWARN_HOOK": hook,
                "FOREWARN_CALL": call,
                "FOREWARN_HOST": task.host.name if task.host is not None else "",
                "FOREWARN_HOST_URI": (task.host.uri or "") if task.host is not None else "",
                "FOREWARN_ORDER": task.order,
                "FOREWARN_ATTEMPT": f"{task.attempt}",
                "FOREWARN_MARK": task.mark,
            },
            input=as_json(task, call=call),
            timeout=self._settings.timeout_of(hook),
        )

    # Answers

    def _answer(self, task: DriverTask, known: _HookRun) -> Begun | NotBegun:
        outcome = known.run.wait(SHORT)
        if outcome is None:
            taken = time.monotonic() - known.run.began_at
            return Running(task.now + timedelta(seconds=min(max(taken / 10, SOONEST), LATEST)))
        said = self._said(task, known.call, outcome)
        span = format_span(round(time.monotonic() - known.run.began_at, 1))
        log.info("hook %s of %s: %s after %s", known.call, task.name, type(said).__name__.lower(), span)
        if not isinstance(said, Done | Failed):
            self._forget(task.id, known)  # the next time the hook itself is asked
        return said

    def _forget(self, attempt: AttemptId, known: _HookRun) -> None:
        with self._lock:
            if self._runs.get(attempt) is known:
                del self._runs[attempt]

    def _said(self, task: DriverTask, call: str, outcome: Outcome) -> Begun | NotBegun:
        """Return what the end of a hook says of its step."""
        match outcome:
            case NotRun(why=why) if call == BEGIN:
                return self._failed(task, why)
            case NotRun(why=why):
                return Unknown(why)
            case TimedOut():
                allowed = format_span(self._settings.timeout_of(task.task or HostTask.WORK))
                return Unknown(f"the hook was still at {call} after {allowed}, and was ended")
            case Exited(code=code) if code < 0:
                return Unknown(f"the hook was ended by signal {-code} in {call}")
        answer = read_answer(outcome.output) or ProgramAnswer()
        match outcome.code:
            case 0:
                return self._as_driver(task, answer, answer.state or "done")
            case 75:
                return self._as_driver(task, answer, "unknown" if answer.state == "unknown" else "running")
            case code:
                return self._failed(task, answer.why or outcome.last_line or f"the hook exited with {code}")

    def _as_driver(self, task: DriverTask, answer: ProgramAnswer, state: StateWord) -> Begun | NotBegun:
        match answer.as_state(state, now=task.now):
            case Done():
                return Done()
            case Failed(why=why):
                return self._failed(task, why)
            case Cancelled() | TooLate():
                return Unknown(f"the hook says {state}, which it was not asked")
            case said:
                return said

    def _failed(self, task: DriverTask, why: str) -> Failed:
        return Failed(why, again=task.attempt <= self._settings.retries)
