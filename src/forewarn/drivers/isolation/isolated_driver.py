"""A driver whose calls are made in a process of its own."""

from datetime import timedelta
from functools import partial
from typing import Any

from forewarn.control.driver import Begun, CancelAnswer, Checked, Driver, DriverLimits, DriverTask, Unknown
from forewarn.core.errors import Unavailable
from forewarn.drivers.isolation.driver_process import DriverProcess

# What a driver may offer besides (control/driver.py): methods, and values that say what else it does.
OFFERED_METHODS = ("precheck", "reach", "inventory")
OFFERED_NOTES = ("ended",)
OFFERED_VALUES = (
    "fences",
    "cordons",
    "chooses_hosts",
    "works_on_hosts",
    "verifies_restarts",
    "lists_by_host",
)

# A process that has died is there again within half a second.
ASK_AGAIN = timedelta(seconds=1)


class IsolatedDriver:
    """Passes calls on to the process of a driver, and offers what that driver offers.

    If the process dies, the calls that it had are `Unknown` for steps, which it may have begun; others raise
    Unavailable. Nothing is called again here.
    """

    def __init__(self, declared: Driver, process: DriverProcess) -> None:
        """Take the driver as it was made in the server, which is never called, and its process."""
        self.process = process
        self._limits = declared.limits
        # On the object itself: it offers a method if it has it.
        for name in filter(partial(hasattr, declared), OFFERED_VALUES):
            setattr(self, name, getattr(declared, name))
        for name in filter(partial(hasattr, declared), OFFERED_METHODS):
            setattr(self, name, partial(self._call, name))
        for name in filter(partial(hasattr, declared), OFFERED_NOTES):
            setattr(self, name, partial(self._note, name))

    @property
    def limits(self) -> DriverLimits | None:
        """How it is called."""
        return self._limits

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step."""
        begun: Begun = self._step("begin", task)
        return begun

    def check(self, task: DriverTask) -> Checked:
        """Find out how a step is doing."""
        checked: Checked = self._step("check", task)
        return checked

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off."""
        answer: CancelAnswer = self._step("cancel", task)
        return answer

    def _step(self, method: str, task: DriverTask) -> Any:
        try:
            return self._call(method, task)
        except Unavailable as error:
            return Unknown(str(error), task.now + ASK_AGAIN)

    def _call(self, method: str, *args: Any) -> Any:
        return self.process.call(method, args)

    def _note(self, method: str, *args: Any) -> None:
        self.process.note(method, args)
