"""A driver that only pretends: each step takes its time and succeeds.

It keeps nothing, needs no thread and no sleep, and goes by the time it is given, so that a virtual clock runs
a whole history in milliseconds, the same way every time.
"""

from datetime import datetime

from forewarn.config import SimulatedTimes
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverTask,
    Running,
)
from forewarn.core.basic_types import Action, HostTask, Work
from forewarn.drivers.driver_setup import DriverSetup, NoOptions


def make(setup: DriverSetup) -> "SimulatedDriver":
    """Make the driver as it is set."""
    setup.read(NoOptions())
    return SimulatedDriver(setup.settings.simulated)


class SimulatedDriver:
    """Steps that take as long as the published medians say."""

    trusted_text = True
    limits = None  # it answers at once
    fences = True  # what is only pretended disturbs nobody
    works_on_hosts = True

    def __init__(self, times: SimulatedTimes) -> None:
        self._times = times

    def begin(self, task: DriverTask) -> Begun:
        """Start pretending."""
        return self._answer(task)

    def check(self, task: DriverTask) -> Checked:
        """Return whether the time is over."""
        return self._answer(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Stop pretending."""
        return Cancelled()

    def _answer(self, task: DriverTask) -> Done | Running:
        over = self._over_at(task)
        return Done() if task.now >= over else Running(over)

    def _over_at(self, task: DriverTask) -> datetime:
        if task.task not in (None, HostTask.WORK):
            return task.begun_at
        # Machines that leave a host for work on it move as others do.
        moved = task.action is Action.SERVICE and task.work is not Work.HOST
        return task.begun_at + self._times.of(Action(task.work) if moved else task.action)
