"""A driver that wraps another driver and runs the operator's hooks before and after its work on a machine.

A step then has up to three parts: the hook before, the work and the hook after. The step's mark names the
part, and the store saves the mark before the part begins. So each part begins once for an attempt. After a
crash the server calls `check` of the hook or driver first. If the hook before or the work has begun, the hook
after always runs, however the attempt ends.

One lock for each attempt serializes its calls, which lanes make in several threads. An operator may abandon
the order during a call. Then the last of the two to finish starts the hook after.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from forewarn.config import MachineHookSettings
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    Driver,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    Prechecking,
    Reaching,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HOOK
from forewarn.core.disclosure import mark_driver_text
from forewarn.core.model.host import Host
from forewarn.drivers.hooks import Hook, HookRuns
from forewarn.drivers.machine_hook_attempts import (
    HookedAttempt,
    HookedAttempts,
    HookedMark,
    Part,
    WorkEnd,
    hook_after,
    hook_before,
    read_mark,
    write_mark,
)

log = logging.getLogger(__name__)

# Time that a call may need for a short hook, in addition to the driver's own timeout.
CALL_OVERHEAD = timedelta(seconds=5)
# The next check of a step that waits for a hook of an earlier attempt.
CHECK_SOON = timedelta(seconds=1)
# How long a call waits for another call of its attempt, in seconds. The lane has other calls to make.
TURN_SECONDS = 1.0
HAS_ENDED = "the attempt has ended already"
NOT_ANSWERED = "an earlier call of this attempt has not returned yet"

Answer = TypeVar("Answer")


class MachineHooks:
    """Runs hooks before and after the work of another driver."""

    def __init__(self, driver: Driver, settings: MachineHookSettings, *, runs: HookRuns) -> None:
        self._driver = driver
        self._settings = settings
        self._has_hooks = bool(settings.before or settings.after)
        self._runs = runs
        self.attempts = HookedAttempts()

    @property
    def limits(self) -> DriverLimits | None:
        """The driver's limits, with time for hooks if there are any."""
        limits = self._driver.limits
        if limits is None or not self._has_hooks:
            return limits
        return replace(limits, timeout=limits.timeout + CALL_OVERHEAD)

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Call the driver's precheck, if it has one."""
        return self._driver.precheck(task) if isinstance(self._driver, Prechecking) else None

    def reach(self, host: Host) -> str | None:
        """Call the driver's reach, if it has one."""
        return self._driver.reach(host) if isinstance(self._driver, Reaching) else None

    # The calls of the engine

    def begin(self, task: DriverTask) -> Begun:
        """Run the hook before; if there is none, begin the work."""
        if task.machine is None or task.verifies or not self._has_hooks:
            return self._driver.begin(task)
        part = Part.BEFORE if self._settings.before else Part.WORK

        def begin(known: HookedAttempt) -> Begun:
            known.to_begin = part
            answer = self._check(task, known, HookedMark(part=part))
            return Unknown("the step has not begun") if isinstance(answer, NotBegun) else answer

        return self._in_turn(task, begin)

    def check(self, task: DriverTask) -> Checked:
        """Check the current part; the next part begins after its mark is saved."""
        mark = self._mark_of(task)
        if mark is None:
            return self._driver.check(task)
        return self._in_turn(task, lambda known: self._check(task, known, mark))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel the work and run the hook after; the answer is Cancelled when that hook has ended."""
        mark = self._mark_of(task)
        if mark is None:
            return self._driver.cancel(task)
        if mark.part is Part.AFTER:
            return TooLate()
        is_new = task.id not in self.attempts

        def cancel(known: HookedAttempt) -> CancelAnswer:
            known.abandoned = True
            # An earlier server may have cancelled the work and begun the hook after.
            known.after = known.after or is_new
            if not known.cancelled:
                answer = self._cancel_part(task, known, mark)
                if not isinstance(answer, Cancelled):
                    return answer
                known.cancelled = True
            return self._run_hook_after_cancel(task, known)

        return self._in_turn(task, cancel)

    def ended(self, task: DriverTask) -> None:
        """Forget an attempt; if the engine ended it, start the hook after."""
        if self._mark_of(task) is not None and (known := self.attempts.end(task.id)) is not None:
            self._clean_up(task, known)

    def _in_turn(self, task: DriverTask, ask: Callable[[HookedAttempt], Answer]) -> Answer | Unknown:
        """Run a call of an attempt when no other call of it runs."""
        if self.attempts.has_ended(task.id):
            return Unknown(HAS_ENDED)
        known = self.attempts.known(task.id)
        if not known.turn.acquire(timeout=TURN_SECONDS):
            return Unknown(NOT_ANSWERED)
        try:
            # If the attempt has ended in the meantime, the call must begin nothing.
            return Unknown(HAS_ENDED) if self.attempts.has_ended(task.id) else ask(known)
        finally:
            known.turn.release()
            if self.attempts.has_ended(task.id):
                self._clean_up(task, known)

    def _clean_up(self, task: DriverTask, known: HookedAttempt) -> None:
        """Start the hook after for an attempt that has ended; a running call does this itself."""
        if task.machine is None or not known.turn.acquire(blocking=False):
            return
        try:
            before, hook = (task.id, Part.BEFORE), hook_after(task, self._settings, end=None)
            if known.over or not known.begun or not self._settings.after:
                self._runs.forget(before)
                self._runs.forget(hook.key)
                return
            known.over = True
            self.attempts.leave(task.machine.id, hook.key)
            if not known.after:
                self._runs.start(hook, ending=before)
            self._runs.forget(before)
        finally:
            known.turn.release()

    # Parts

    def _check(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        if known.to_begin is mark.part and not known.begun and self._earlier_hook_runs(task):
            return Running(task.now + CHECK_SOON)
        match mark.part:
            case Part.BEFORE:
                return self._before(task, known, mark)
            case Part.WORK:
                return self._work(task, known, mark)
            case Part.AFTER:
                return self._after(task, known, mark)

    def _before(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        if not self._settings.before:  # removed from the settings
            return self._next(task, known, HookedMark(part=Part.WORK))
        hook = hook_before(task, self._settings, mark=mark.hook)
        match self._run_or_check(known, Part.BEFORE, hook):
            case Done() if known.abandoned:
                return self._ended_with(task, known, Cancelled())
            case Done():
                return self._next(task, known, HookedMark(part=Part.WORK))
            case Failed(why=why):
                return self._ended_with(task, known, Failed(_of_hook(Part.BEFORE, why)))
            case Unknown() as unknown:
                return replace(unknown, why=_of_hook(Part.BEFORE, unknown.why))
            case Running() as running:
                return _with_mark(running, replace(mark, hook=running.mark or mark.hook))

    def _work(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        drivers_task = replace(task, mark=mark.mark)
        is_next = known.begins_now(Part.WORK)
        known.begun = True
        answer = NotBegun() if is_next else self._driver.check(drivers_task)
        if isinstance(answer, NotBegun):
            if known.abandoned and not is_next:
                return self._ended_with(task, known, Cancelled())
            answer = self._driver.begin(drivers_task)
        match answer:
            case Done() | Failed() as end:
                return self._ended_with(task, known, end)
            case Running() as running:
                return _with_mark(running, replace(mark, mark=running.mark or mark.mark))
            case unknown:
                return unknown

    def _after(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        if mark.end is None or not self._settings.after:  # removed from the settings
            return known.end_with(mark.end or Cancelled())
        hook = hook_after(task, self._settings, mark=mark.hook, end=mark.end)
        match self._run_or_check(known, Part.AFTER, hook):
            case Done():
                return known.end_with(mark.end)
            case Failed(why=why):
                log.error("hook after the work on %s failed: %s", task.name, why)
                return known.end_with(mark.end, note=f"the hook after the work failed: {why}")
            case Unknown() as unknown:
                return replace(unknown, why=_of_hook(Part.AFTER, unknown.why))
            case Running() as running:
                return _with_mark(running, replace(mark, hook=running.mark or mark.hook))

    def _next(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Running:
        """Let the engine save the next part's mark; the next call begins the part."""
        known.to_begin = mark.part
        return Running(task.now, mark=write_mark(mark))

    def _ended_with(self, task: DriverTask, known: HookedAttempt, end: WorkEnd) -> Checked:
        if not self._settings.after:
            return known.end_with(end)
        return self._next(task, known, HookedMark(part=Part.AFTER, end=end))

    # Cancelling

    def _cancel_part(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> CancelAnswer:
        """Cancel the hook before, or the work."""
        if known.to_begin is mark.part:
            known.to_begin = None
            return Cancelled()  # the part has not begun
        if mark.part is Part.WORK:
            known.begun = True
            return self._driver.cancel(replace(task, mark=mark.mark))
        return self._end_before(task, known, mark)

    def _end_before(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> CancelAnswer:
        """Stop the hook before; wait for work that it left elsewhere."""
        hook = hook_before(task, self._settings, mark=mark.hook)
        known.begun = True
        if not self._settings.before or isinstance(self._runs.end(hook), Cancelled):
            return Cancelled()
        match self._runs.check(hook):
            case Done() | Failed():
                return Cancelled()
            case NotBegun():
                known.begun = False
                return Cancelled()
            case Running(look_at=look_at):
                return Unknown(_of_hook(Part.BEFORE, "the hook has not ended"), look_at)
            case Unknown() as unknown:
                return replace(unknown, why=_of_hook(Part.BEFORE, unknown.why))

    def _run_hook_after_cancel(self, task: DriverTask, known: HookedAttempt) -> CancelAnswer:
        if known.begun and self._settings.after:
            known.to_begin = None if known.after else Part.AFTER
            hook = hook_after(task, self._settings, mark=known.hook_mark, end=Cancelled())
            match self._run_or_check(known, Part.AFTER, hook):
                case Running(look_at=look_at, mark=mark):
                    known.hook_mark = mark or known.hook_mark
                    return Unknown(_of_hook(Part.AFTER, "the hook has not ended"), look_at)
                case Unknown() as unknown:
                    return replace(unknown, why=_of_hook(Part.AFTER, unknown.why))
                case Failed(why=why):
                    log.error("hook after the work on %s failed: %s", task.name, why)
                case Done():
                    pass
        known.over = True
        return Cancelled()

    # Hooks

    def _run_or_check(self, known: HookedAttempt, part: Part, hook: Hook) -> Begun:
        """Begin a hook if it is next or has not begun; otherwise check it."""
        is_next = known.begins_now(part)
        known.begun = True
        answer = self._runs.begin(hook) if is_next else self._runs.check(hook)
        return self._runs.begin(hook) if isinstance(answer, NotBegun) else answer

    def _earlier_hook_runs(self, task: DriverTask) -> bool:
        """Return whether the hook after an earlier attempt at the same machine still runs."""
        if task.machine is None or (left := self.attempts.left(task.machine.id)) is None:
            return False
        if self._runs.is_running(left):
            return True
        self.attempts.settle(task.machine.id)
        self._runs.forget(left)
        return False

    def _mark_of(self, task: DriverTask) -> HookedMark | None:
        """Return the progress of a step; None if it has no hooks."""
        if task.machine is None or task.verifies:
            return None
        mark = read_mark(task.mark)
        if mark is not None or task.mark or not self._has_hooks:
            return mark  # None for a step that began without hooks
        return HookedMark(part=Part.BEFORE if self._settings.before else Part.WORK)


def _with_mark(running: Running, mark: HookedMark) -> Running:
    return replace(running, mark=write_mark(mark))


def _of_hook(part: Part, text: str) -> str:
    return mark_driver_text(f"{part} the work: {text}", HOOK)
