"""A driver that runs in a process of its own."""

from datetime import timedelta
from functools import partial
from typing import Any

from forewarn.control.driver import Begun, CancelAnswer, Checked, Driver, DriverTask, Unknown
from forewarn.core.errors import Unavailable
from forewarn.drivers.isolation.driver_process import DriverProcess

# The optional members of a driver (control/driver.py): methods, notifications and flags.
OPTIONAL_METHODS = ("precheck", "reach", "inventory")
OPTIONAL_NOTIFICATIONS = ("ended",)
OPTIONAL_FLAGS = (
    "fences",
    "cordons",
    "chooses_hosts",
    "works_on_hosts",
    "verifies_restarts",
    "lists_by_host",
)

# A process that has died is replaced within half a second.
CHECK_AGAIN = timedelta(seconds=1)


class IsolatedDriver:
    """Forwards calls to the process of a driver and has the same optional members.

    If the process dies during a call of a step, the answer is Unknown, because the driver may have begun the
    step. Other calls raise Unavailable. This class never repeats a call.
    """

    def __init__(self, declared: Driver, process: DriverProcess) -> None:
        """Take the driver's process, and the driver as created in the server, which is never called."""
        self.process = process
        self.limits = declared.limits
        # `isinstance` with the optional protocols looks for these attributes.
        for name in filter(partial(hasattr, declared), OPTIONAL_FLAGS):
            setattr(self, name, getattr(declared, name))
        for name in filter(partial(hasattr, declared), OPTIONAL_METHODS):
            setattr(self, name, partial(process.call, name))
        for name in filter(partial(hasattr, declared), OPTIONAL_NOTIFICATIONS):
            setattr(self, name, partial(process.note, name))

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step."""
        begun: Begun = self._step("begin", task)
        return begun

    def check(self, task: DriverTask) -> Checked:
        """Check a step."""
        checked: Checked = self._step("check", task)
        return checked

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step."""
        answer: CancelAnswer = self._step("cancel", task)
        return answer

    def _step(self, method: str, task: DriverTask) -> Any:
        try:
            return self.process.call(method, task)
        except Unavailable as error:
            return Unknown(str(error), task.now + CHECK_AGAIN)
