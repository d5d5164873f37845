"""The driver of hosts and orders whose own is not there, or cannot be used: it knows and does nothing."""

from datetime import timedelta

from forewarn.control.driver import Begun, CancelAnswer, Checked, DriverLimits, DriverTask, Unknown
from forewarn.core.redaction import driver_named

# Only a start brings a driver, and that asks about every step anyway.
LOOK_AGAIN = timedelta(hours=1)


class NotInstalled:
    """Says of every step why its driver is not there."""

    in_own_words = True
    limits = DriverLimits(timeout=timedelta(minutes=1), at_once=1)

    def __init__(self, name: str, why: str = "") -> None:
        self._why = f"{driver_named(name)} {f'cannot be used: {why}' if why else 'is not installed'}"

    def begin(self, task: DriverTask) -> Begun:
        """Begin nothing."""
        return self._answer(task)

    def check(self, task: DriverTask) -> Checked:
        """Know nothing."""
        return self._answer(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call nothing off: what another process has begun may still go on."""
        return self._answer(task)

    def _answer(self, task: DriverTask) -> Unknown:
        return Unknown(self._why, task.now + LOOK_AGAIN)
