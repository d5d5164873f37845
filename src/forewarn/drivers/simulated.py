"""A driver that simulates work: each step takes a set time and succeeds.

It keeps no state and starts no thread. It uses `task.now` alone, so a manual clock runs a whole history in
milliseconds, with the same result every time.
"""

from datetime import datetime

from forewarn.config import SimulatedTimes
from forewarn.control.driver import CancelAnswer, Cancelled, Done, DriverTask, Running
from forewarn.core.basic_types import Action, HostTask, Work
from forewarn.drivers.driver_setup import DriverSetup, NoOptions


def make(setup: DriverSetup) -> "SimulatedDriver":
    """Create the driver from its settings."""
    setup.read(NoOptions())
    return SimulatedDriver(setup.settings.simulated)


class SimulatedDriver:
    """A driver whose steps take as long as the published medians."""

    trusted_text = True
    limits = None  # it answers at once
    fences = True  # a simulated host cannot disturb its machines
    works_on_hosts = True

    def __init__(self, times: SimulatedTimes) -> None:
        self._times = times

    def begin(self, task: DriverTask) -> Done | Running:
        """Start the simulated step."""
        over = self._over_at(task)
        return Done() if task.now >= over else Running(over)

    check = begin

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Stop the simulated step."""
        return Cancelled()

    def _over_at(self, task: DriverTask) -> datetime:
        if task.task not in (None, HostTask.WORK):
            return task.begun_at
        # Machines that leave a host for service move like all others.
        moved = task.action is Action.SERVICE and task.work is not Work.HOST
        return task.begun_at + self._times.of(Action(task.work) if moved else task.action)
