"""The process whose number is in a file: ended gracefully and started again, if it is the one that wrote it.

A program that was killed leaves its file behind, and its number is given to another, at the latest after the
machine was restarted. So a process is signalled only if it started before the file was written.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from forewarn.agent.handlers.exec import refused
from forewarn.agent.handling import Command, Never, Outcome, Ready, Side, Task
from forewarn.clock import SystemClock
from forewarn.core.moments import format_span_briefly
from forewarn.platform import system

LOOK_EVERY = 0.1
# Systems tell the start of a process, and when a file was written, by clocks of whole seconds at the worst.
TOLERANCE_SECONDS = 1.0

NOT_RUNNING = Ready("it does not run")
LEFT_DOWN = Ready("it did not run before the event, and stays so")


class Found(NamedTuple):
    """The process that wrote a file."""

    pid: int
    started: str


class Stranger(NamedTuple):
    """A process that has the number in a file, and is another's."""

    why: str


Named: TypeAlias = Found | Stranger | None  # None: no such process runs


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """The process whose number is in a file."""

    path: Path
    signal: int
    start: Sequence[str] | None
    executable: Path | None = None

    async def prepare(self, task: Task) -> Outcome:
        """Ask it to end, and wait until it has."""
        match self.named():
            case None:
                return NOT_RUNNING
            case Stranger(why):
                return Never(f"nobody was signalled: {why}")
            case Found(pid, started):
                return await self._end(pid, started, task)

    async def _end(self, pid: int, started: str, task: Task) -> Outcome:
        task.owe(str(self.path))
        try:
            system.ask_to_end(pid, self.signal)
        except ProcessLookupError:
            return NOT_RUNNING
        except PermissionError:
            return Never(f"process {pid} of {self.path} may not be ended by the agent")
        while system.process_started(pid) == started:  # noqa: ASYNC110 - nobody announces the end of a process
            await asyncio.sleep(LOOK_EVERY)
        return Ready(f"process {pid} has ended")

    async def recover(self, task: Task) -> Outcome:
        """Start it, if it was ended here and does not run already."""
        if not task.owes(str(self.path)):
            return LEFT_DOWN
        if self.start is None or isinstance(self.named(), Found):
            return Ready()
        if refusal := refused(self.start[0]):
            return Never(refusal)
        return await task.run(Command(words=self.start))

    def describe(self, side: Side) -> str:
        """Describe what it would do."""
        if side is Side.PREPARE:
            which = f", if it runs {self.executable}" if self.executable else ""
            return f"ends the process of {self.path} with {signal.Signals(self.signal).name}{which}"
        return f"runs {' '.join(self.start)}, if it ran before" if self.start else ""

    def problems(self) -> Sequence[str]:
        """Return whether the file cannot be written, or a program does not exist or would be refused."""
        folder = self.path.parent
        absent = self.executable is not None and not self.executable.exists()
        found = (
            None if folder.is_dir() else f"pid-file: the folder {folder} does not exist",
            f"executable: {self.executable} does not exist" if absent else None,
            refused(self.start[0]) if self.start else None,
        )
        return [problem for problem in found if problem]

    def remarks(self) -> Sequence[str]:
        """Return what is to be known of the file as it is now."""
        if not self.path.exists():
            return (f"{self.path} does not exist: it does not run now, or the name is wrong",)
        named = self.named()
        return (f"{named.why}: nobody would be signalled",) if isinstance(named, Stranger) else ()

    def named(self) -> Named:
        """Find the process whose number is in the file, and whether it wrote the file."""
        try:
            # Number and time of one and the same file, whatever takes its place meanwhile.
            with self.path.open(encoding="ascii") as file:
                pid, written = int(file.read().split()[0]), os.fstat(file.fileno()).st_mtime
        except (OSError, ValueError, IndexError):
            return None
        started, age = system.process_started(pid), system.process_age(pid)
        if started is None or age is None:
            return None
        after = SystemClock().now().timestamp() - written - age
        if after > TOLERANCE_SECONDS:
            return Stranger(
                f"process {pid} of {self.path} started {format_span_briefly(after)} after that was written: "
                "it did not write it, and is another"
            )
        return self._other_program(pid) or Found(pid, started)

    def _other_program(self, pid: int) -> Stranger | None:
        if self.executable is None:
            return None
        runs = system.process_executable(pid)
        if runs is None:
            return Stranger(f"what process {pid} of {self.path} runs cannot be seen by the agent's user")
        if runs == self.executable.resolve():
            return None
        return Stranger(f"process {pid} of {self.path} runs {runs}, not {self.executable}")
