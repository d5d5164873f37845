"""The hooks of the settings around the work on a machine: a driver around the driver of its host.

A step is then up to three parts: the hook before, the work, the hook after. Which of them runs is saved in
the step's mark before it is begun. So each is begun once for an attempt, and after a crash whoever does the
part is asked with `check` first, as always. The hook after is run however the attempt ends, once the hook
before it, or the work, was begun.

One lock for each attempt keeps its calls apart. Lanes make them in several threads, and an order may be
abandoned while one of them is under way: whichever of the two comes last starts the hook after.
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

# What a call may take beside the driver's own: a short hook is waited for.
AROUND = timedelta(seconds=5)
# When a step is looked at again that waits for a hook of an earlier attempt.
SOON = timedelta(seconds=1)
# How long a call waits for another one of its attempt, in seconds: a lane has others to make.
PATIENCE = 1.0
HAS_ENDED = "it has ended already"
NOT_ANSWERED = "it was asked before, and has not answered yet"

Answer = TypeVar("Answer")


class MachineHooks:
    """Does what another driver does, with a hook before and one after."""

    def __init__(self, driver: Driver, settings: MachineHookSettings, *, runs: HookRuns) -> None:
        """Take the driver, and who runs the hooks of all drivers."""
        self._driver = driver
        self._settings = settings
        self._runs = runs
        self.attempts = HookedAttempts()

    @property
    def _is_set(self) -> bool:
        return bool(self._settings.before or self._settings.after)

    @property
    def limits(self) -> DriverLimits | None:
        """As the driver has them, with a little time for hooks if there are any."""
        limits = self._driver.limits
        return (
            limits if limits is None or not self._is_set else replace(limits, timeout=limits.timeout + AROUND)
        )

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Have the driver tell beforehand, if it can."""
        return self._driver.precheck(task) if isinstance(self._driver, Prechecking) else None

    def reach(self, host: Host) -> str | None:
        """Have the driver tell, if it can."""
        return self._driver.reach(host) if isinstance(self._driver, Reaching) else None

    # What is asked

    def begin(self, task: DriverTask) -> Begun:
        """Run the hook before, or begin the work if there is none."""
        if task.machine is None or task.verifies or not self._is_set:
            return self._driver.begin(task)
        part = Part.BEFORE if self._settings.before else Part.WORK

        def begin(known: HookedAttempt) -> Begun:
            known.to_begin = part
            answer = self._check(task, known, HookedMark(part=part))
            return Unknown("it has not begun") if isinstance(answer, NotBegun) else answer

        return self._in_turn(task, begin)

    def check(self, task: DriverTask) -> Checked:
        """Look at the part that is under way; what comes after it is begun once that is saved."""
        mark = self._mark_of(task)
        if mark is None:
            return self._driver.check(task)
        return self._in_turn(task, lambda known: self._check(task, known, mark))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call the work off, and run the hook after; it is called off once that has ended."""
        mark = self._mark_of(task)
        if mark is None:
            return self._driver.cancel(task)
        if mark.part is Part.AFTER:
            return TooLate()
        is_new = task.id not in self.attempts

        def cancel(known: HookedAttempt) -> CancelAnswer:
            known.given_up = True
            # The server before may have called it off, and begun the hook after.
            known.after = known.after or is_new
            if not known.called_off:
                answer = self._call_off(task, known, mark)
                if not isinstance(answer, Cancelled):
                    return answer
                known.called_off = True
            return self._leave_called_off(task, known)

        return self._in_turn(task, cancel)

    def ended(self, task: DriverTask) -> None:
        """Forget an attempt; if it ended otherwise than was said here, start the hook after."""
        if self._mark_of(task) is not None and (known := self.attempts.end(task.id)) is not None:
            self._see_to_end(task, known)

    def _in_turn(self, task: DriverTask, ask: Callable[[HookedAttempt], Answer]) -> Answer | Unknown:
        """Ask about an attempt once no other call is at it."""
        if self.attempts.has_ended(task.id):
            return Unknown(HAS_ENDED)
        known = self.attempts.known(task.id)
        if not known.turn.acquire(timeout=PATIENCE):
            return Unknown(NOT_ANSWERED)
        try:
            # It may have ended meanwhile: a call that was on its way must not begin anything.
            return Unknown(HAS_ENDED) if self.attempts.has_ended(task.id) else ask(known)
        finally:
            known.turn.release()
            if self.attempts.has_ended(task.id):
                self._see_to_end(task, known)

    def _see_to_end(self, task: DriverTask, known: HookedAttempt) -> None:
        """Start the hook after an attempt that has ended, unless a call is at it, which then does this."""
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
        if known.to_begin is mark.part and not known.begun and self._is_left(task):
            return Running(task.now + SOON)
        match mark.part:
            case Part.BEFORE:
                return self._before(task, known, mark)
            case Part.WORK:
                return self._work(task, known, mark)
            case Part.AFTER:
                return self._after(task, known, mark)

    def _before(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        if not self._settings.before:  # any more
            return self._next(task, known, HookedMark(part=Part.WORK))
        match self._ask_before(task, known, mark):
            case Done() if known.given_up:
                return self._ended_with(task, known, Cancelled())
            case Done():
                return self._next(task, known, HookedMark(part=Part.WORK))
            case Failed(why=why):
                return self._ended_with(task, known, Failed(_said(f"before the work: {why}")))
            case Unknown() as unknown:
                return replace(unknown, why=_said(f"before the work: {unknown.why}"))
            case Running() as running:
                return _noted(running, replace(mark, hook=running.mark or mark.hook))

    def _work(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        inside = replace(task, mark=mark.mark)
        if known.takes_turn(Part.WORK):
            return self._begin_work(inside, known, mark)
        known.begun = True
        answer = self._driver.check(inside)
        if not isinstance(answer, NotBegun):
            return self._of_work(task, known, mark, answer)
        if known.given_up:
            return self._ended_with(task, known, Cancelled())
        return self._begin_work(inside, known, mark)

    def _begin_work(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        known.begun = True
        return self._of_work(task, known, mark, self._driver.begin(task))

    def _of_work(self, task: DriverTask, known: HookedAttempt, mark: HookedMark, answer: Begun) -> Checked:
        match answer:
            case Done() | Failed() as end:
                return self._ended_with(task, known, end)
            case Running() as running:
                return _noted(running, replace(mark, mark=running.mark or mark.mark))
            case unknown:
                return unknown

    def _after(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Checked:
        if mark.end is None or not self._settings.after:  # any more
            return known.end_with(mark.end or Cancelled())
        match self._ask_after(task, known, mark.hook, mark.end):
            case Done():
                return known.end_with(mark.end)
            case Failed(why=why):
                log.error("hook after the work on %s failed: %s", task.name, why)
                return known.end_with(mark.end, note=f"the hook after the work failed: {why}")
            case Unknown() as unknown:
                return replace(unknown, why=_said(f"after the work: {unknown.why}"))
            case Running() as running:
                return _noted(running, replace(mark, hook=running.mark or mark.hook))

    def _next(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Running:
        """Have it saved which part is next; it is begun with the next call."""
        known.to_begin = mark.part
        return Running(task.now, mark=write_mark(mark))

    def _ended_with(self, task: DriverTask, known: HookedAttempt, end: WorkEnd) -> Checked:
        if not self._settings.after:
            return known.end_with(end)
        return self._next(task, known, HookedMark(part=Part.AFTER, end=end))

    # Calling off

    def _call_off(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> CancelAnswer:
        """Call off what is under way; the hook after is not looked at."""
        if known.to_begin is mark.part:
            known.to_begin = None
            return Cancelled()  # nobody has begun that part
        if mark.part is Part.WORK:
            known.begun = True
            return self._driver.cancel(replace(task, mark=mark.mark))
        return self._end_before(task, known, mark)

    def _end_before(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> CancelAnswer:
        """End the hook before; what it has left elsewhere is waited for."""
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
                return Unknown(_said("before the work: the hook has not ended"), look_at)
            case Unknown() as unknown:
                return replace(unknown, why=_said(f"before the work: {unknown.why}"))

    def _leave_called_off(self, task: DriverTask, known: HookedAttempt) -> CancelAnswer:
        if known.begun and self._settings.after:
            known.to_begin = None if known.after else Part.AFTER
            match self._ask_after(task, known, known.hook_mark, Cancelled()):
                case Running(look_at=look_at, mark=mark):
                    known.hook_mark = mark or known.hook_mark
                    return Unknown(_said("after the work: the hook has not ended"), look_at)
                case Unknown() as unknown:
                    return replace(unknown, why=_said(f"after the work: {unknown.why}"))
                case Failed(why=why):
                    log.error("hook after the work on %s failed: %s", task.name, why)
                case Done():
                    pass
        known.over = True
        return Cancelled()

    # Hooks

    def _ask_before(self, task: DriverTask, known: HookedAttempt, mark: HookedMark) -> Begun:
        hook = hook_before(task, self._settings, mark=mark.hook)
        return self._asked(known, Part.BEFORE, hook)

    def _ask_after(self, task: DriverTask, known: HookedAttempt, mark: str, end: WorkEnd) -> Begun:
        hook = hook_after(task, self._settings, mark=mark, end=end)
        return self._asked(known, Part.AFTER, hook)

    def _asked(self, known: HookedAttempt, part: Part, hook: Hook) -> Begun:
        """Begin a hook if it is its turn, and else look at it or ask it; one that was not begun is begun."""
        is_next = known.takes_turn(part)
        known.begun = True
        answer = self._runs.begin(hook) if is_next else self._runs.check(hook)
        return self._runs.begin(hook) if isinstance(answer, NotBegun) else answer

    def _is_left(self, task: DriverTask) -> bool:
        """Return whether the hook after an earlier attempt at the same machine still runs."""
        if task.machine is None or (left := self.attempts.left(task.machine.id)) is None:
            return False
        if self._runs.is_running(left):
            return True
        self.attempts.settle(task.machine.id)
        self._runs.forget(left)
        return False

    def _mark_of(self, task: DriverTask) -> HookedMark | None:
        """Return how far a step is; None if it has nothing to do with hooks."""
        if task.machine is None or task.verifies:
            return None
        mark = read_mark(task.mark)
        is_hooked = bool(self._settings.before or self._settings.after)
        if mark is not None or task.mark or not is_hooked:
            return mark  # one of a driver alone was begun without hooks
        return HookedMark(part=Part.BEFORE if self._settings.before else Part.WORK)


def _noted(running: Running, mark: HookedMark) -> Running:
    return replace(running, mark=write_mark(mark))


def _said(text: str) -> str:
    return mark_driver_text(text, HOOK)
