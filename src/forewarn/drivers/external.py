"""A driver that does nothing: somebody else does the work, and says through the API how it goes.

Whoever begins must report within the limit that the work is done, has failed or goes on. Silence for longer
is a failure, shown like any other, never forgotten.
"""

from datetime import timedelta

from forewarn.control.ports import Begun, Checked, Failed, NotBegun, Running, Task


class ExternalDriver:
    """Waits for the word of others."""

    def __init__(self, silence: timedelta) -> None:
        """Take how long others may be silent where an order does not say."""
        self._silence = silence

    def begin(self, task: Task) -> Begun:
        """Let others begin, and wait for their word."""
        return Running(task.now + self._limit(task))

    def check(self, task: Task) -> Checked:
        """Say that nobody has reported in time; one that was never let begin has not begun."""
        if task.step.look_at == task.step.begun_at:
            return NotBegun()
        return Failed(f"nobody has reported for {self._limit(task).total_seconds():g} s")

    def _limit(self, task: Task) -> timedelta:
        return task.heartbeat or self._silence
