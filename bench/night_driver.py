"""The driver of a night: the simulated driver with injected failures."""

from datetime import timedelta
from zlib import crc32

from forewarn.config import SimulatedTimes
from forewarn.control.driver import Begun, CancelAnswer, Checked, DriverTask, Failed, Running
from forewarn.core.basic_types import HostName, HostTask
from forewarn.drivers.simulated import SimulatedDriver

LOOK_AGAIN = timedelta(minutes=5)
MANY = 1_000_000


class NightDriver:
    """A simulated driver that fails a share of the moves. Some hosts never come back from their work."""

    trusted_text = True
    limits = None  # calls return at once
    fences = True

    def __init__(self, *, failing: float, seed: int) -> None:
        """Take the share of failing moves. The seed selects them."""
        self._simulated = SimulatedDriver(SimulatedTimes())
        self._failing = failing
        self._seed = seed
        self.never_back: frozenset[HostName] = frozenset()
        self.moves = 0
        self.failed = 0

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step, or fail it."""
        if task.target is not None and task.machine is not None:
            self.moves += 1
            if crc32(f"{self._seed} {task.name} {task.attempt}".encode()) % MANY < self._failing * MANY:
                self.failed += 1
                return Failed("the migration was aborted by its monitor")
        return Running(task.now + LOOK_AGAIN) if self._is_gone(task) else self._simulated.begin(task)

    def check(self, task: DriverTask) -> Checked:
        """Return the state of a step."""
        return Running(task.now + LOOK_AGAIN) if self._is_gone(task) else self._simulated.check(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step."""
        return self._simulated.cancel(task)

    def _is_gone(self, task: DriverTask) -> bool:
        return task.task is HostTask.WORK and task.source is not None and task.source.name in self.never_back
