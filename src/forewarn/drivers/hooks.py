"""The hooks of the settings: commands that the server runs for work on hosts, as a driver of host steps.

What a server has begun that was killed, the next one asks with `check` about: a hook may have gone on
meanwhile, and is never begun twice for an attempt by anybody but itself.
"""

from datetime import timedelta

from forewarn.config import HookSettings
from forewarn.control.driver import Begun, CancelAnswer, Checked, DriverLimits, DriverTask, Failed, Unknown
from forewarn.core.copies import replace
from forewarn.core.words import HostTask
from forewarn.drivers.programs.hook_runs import Hook, HookRuns
from forewarn.drivers.programs.program_runs import Invocation
from forewarn.drivers.programs.tasks_as_json import as_json


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
        return Hook(
            key=task.id, name=task.name, now=task.now, invocation=lambda call: self._invocation(task, call)
        )

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

    def _failed(self, task: DriverTask, answer: Failed) -> Failed:
        return replace(answer, again=task.attempt <= self._settings.retries)
