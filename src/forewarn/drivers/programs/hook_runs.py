"""Hooks as they run: begun, looked at, asked what has become of their work, ended.

A hook is called with `begin`, and with `check` as long as it says that it is not done. It is a process of its
own, watched here; whoever asks is answered soon, however long the hook takes.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Done,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.moments import format_span
from forewarn.drivers.programs.program_answers import ProgramAnswer, StateWord, read_answer
from forewarn.drivers.programs.program_runs import (
    Exited,
    Invocation,
    NotRun,
    Outcome,
    ProgramRun,
    TimedOut,
    Unwatched,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A hook of one attempt."""

    key: Hashable  # what names it for good
    name: str  # whose it is, for the log
    now: datetime
    invocation: Callable[[str], Invocation]  # of each call


@dataclass(frozen=True, slots=True)
class _HookRun:
    call: str
    run: ProgramRun
    timeout: timedelta


class HookRuns:
    """Runs hooks, and remembers how they ended."""

    def __init__(self, *, remembered: int | None = None) -> None:
        """Take of how many hooks is remembered how they ended, those that run among them."""
        self._remembered = remembered
        self._lock = threading.Lock()
        self._runs: OrderedDict[Hashable, _HookRun] = OrderedDict()

    def begin(self, hook: Hook) -> Begun:
        """Run a hook."""
        answer = self._answer(hook, self._started(hook, BEGIN))
        return Unknown("the hook says that it has not begun") if isinstance(answer, NotBegun) else answer

    def check(self, hook: Hook) -> Begun | NotBegun:
        """Look at a hook that runs; without one, have the hook say what has become of its work."""
        return self._answer(hook, self._find(hook.key) or self._started(hook, CHECK))

    def end(self, hook: Hook) -> CancelAnswer:
        """End a hook with all that it has started here; work that it has left elsewhere goes on.

        No hook is asked to call its work off: one that does the same whatever it is asked would do it again.
        So what this server has not begun, and what went on after `begin`, is asked after until it is over.
        """
        known = self._find(hook.key)
        if known is None or known.call != BEGIN:
            return TooLate()
        outcome = known.run.end()
        if outcome is None:
            return Unknown("the hook was told to end, and has not ended yet")
        is_ended = isinstance(outcome, TimedOut) or isinstance(_said(hook, known, outcome), Failed)
        return Cancelled() if is_ended else TooLate()

    def start(self, hook: Hook, *, ending: Hashable) -> None:
        """Run a hook once another one has been ended, and do not wait for anything."""
        self._started(hook, BEGIN, ending=self._find(ending))

    def is_running(self, key: Hashable) -> bool:
        """Return whether a hook runs, for all that is remembered."""
        known = self._find(key)
        return known is not None and known.run.wait(0) is None

    def forget(self, key: Hashable) -> None:
        """Forget a hook that nobody will ask about any more; one that runs goes on."""
        with self._lock:
            self._runs.pop(key, None)

    def _find(self, key: Hashable) -> _HookRun | None:
        with self._lock:
            return self._runs.get(key)

    def _started(self, hook: Hook, call: str, *, ending: _HookRun | None = None) -> _HookRun:
        invocation = hook.invocation(call)
        run = ProgramRun(invocation, ending=None if ending is None else ending.run)
        started = _HookRun(call, run, invocation.timeout)
        with self._lock:
            self._runs[hook.key] = started
            while len(self._runs) > (self._remembered or REMEMBERED):
                self._runs.popitem(last=False)
        return started

    def _answer(self, hook: Hook, known: _HookRun) -> Begun | NotBegun:
        outcome = known.run.wait(SHORT)
        if outcome is None:
            taken = time.monotonic() - known.run.began_at
            return Running(hook.now + timedelta(seconds=min(max(taken / 10, SOONEST), LATEST)))
        said = _said(hook, known, outcome)
        span = format_span(round(time.monotonic() - known.run.began_at, 1))
        log.info("hook %s of %s: %s after %s", known.call, hook.name, type(said).__name__.lower(), span)
        if not isinstance(said, Done | Failed):
            with self._lock:  # the next time the hook itself is asked
                if self._runs.get(hook.key) is known:
                    del self._runs[hook.key]
        return said


def _said(hook: Hook, known: _HookRun, outcome: Outcome) -> Begun | NotBegun:
    """Return what the end of a hook says of its step."""
    call = known.call
    match outcome:
        case NotRun(why=why) if call == BEGIN:
            return Failed(why)
        case NotRun(why=why) | Unwatched(why=why):
            return Unknown(why)
        case TimedOut():
            allowed = format_span(known.timeout)
            return Unknown(f"the hook was still at {call} after {allowed}, and was ended")
        case Exited(code=code) if code < 0:
            return Unknown(f"the hook was ended by signal {-code} in {call}")
    answer = read_answer(outcome.output) or ProgramAnswer()
    match outcome.code:
        case 0:
            return _as_driver(hook, answer, answer.state or "done")
        case 75:
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
