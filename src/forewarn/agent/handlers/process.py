"""`process`: stop a program gracefully and start it again: a unit of systemd, or that of a pid file.

A program that was killed leaves its pid file behind, and its number is given to another, at the latest after
the machine was restarted. So a process is signalled only if it started before the file was written.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from forewarn.agent.handlers.exec import command, refused
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Command, Never, Outcome, Ready, Side, Task
from forewarn.clock import SystemClock
from forewarn.core.errors import Invalid
from forewarn.core.time_formats import format_span_briefly
from forewarn.platform import system
from forewarn.wire.texts import shown

LOOK_EVERY = 0.1
# Systems tell the start of a process, and when a file was written, by clocks of whole seconds at the worst.
TOLERANCE_SECONDS = 1.0

NOT_RUNNING = Ready("it does not run")
LEFT_DOWN = Ready("it did not run before the event, and stays so")
SYSTEMCTL = "systemctl"
# How systemd calls the state of a unit that does not run, and is not about to.
DOWN = ("inactive", "failed")
# It will be down, or, if it is being restarted, not.
GOING_DOWN = "deactivating"
# How systemd calls a unit that it cannot run. One that is masked is meant to be down: that is no fault.
NOT_FOUND = "not-found"
BROKEN = ("bad-setting", "error")
# For systemd to answer, when a config is checked.
SHOW_SECONDS = 5.0


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


def _unit(value: object) -> str:
    if (
        not isinstance(value, str)
        or not value
        or value.startswith("-")
        or any(each.isspace() for each in value)
    ):
        raise Invalid(f"expected the name of a unit, as nginx.service, got {shown(value)}")
    return value


def _path(value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise Invalid(f"expected the path of a file, from the root, got {shown(value)}")
    return Path(value)


def _signal(value: object) -> int:
    known = {each.name: each for each in signal.Signals}
    if not isinstance(value, str) or value not in known:
        raise Invalid(f"expected the name of a signal, as SIGTERM or SIGQUIT, got {shown(value)}")
    return int(known[value])


READERS = {"unit": _unit, "pid_file": _path, "executable": _path, "signal": _signal, "start": command}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Make a handler that stops and starts."""
    if ("unit" in options) == ("pid_file" in options):
        raise Invalid("expected either unit or pid-file" + (", got both" if "unit" in options else ""))
    if "unit" in options:
        if needless := [name for name in ("signal", "start", "executable") if name in options]:
            raise Invalid(f"{' and '.join(needless)}: systemd knows that; leave it out with unit")
        return [Declared(does=Unit(options["unit"]))]
    does = PidFile(
        path=options["pid_file"],
        signal=options.get("signal", int(signal.SIGTERM)),
        start=options.get("start"),
        executable=options.get("executable"),
    )
    return [Declared(does=does, remarks=does.remarks())]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of systemd, which knows how to stop it gracefully."""

    name: str

    async def prepare(self, task: Task) -> Outcome:
        """Stop it, and wait until it has."""
        if not task.owes(self.name):
            state = await self._settled()
            if state.get("ActiveState") in DOWN:
                fault = self._fault(state)
                return Never(fault) if fault else NOT_RUNNING
            task.owe(self.name)
        return await task.run(Command(words=(SYSTEMCTL, "stop", "--", self.name)))

    async def recover(self, task: Task) -> Outcome:
        """Start it, if it was stopped here."""
        if not task.owes(self.name):
            return LEFT_DOWN
        return await task.run(Command(words=(SYSTEMCTL, "start", "--", self.name)))

    def describe(self, side: Side) -> str:
        """Describe what it would do."""
        if side is Side.PREPARE:
            return f"stops the unit {self.name}"
        return f"starts the unit {self.name}, if it ran before"

    def problems(self) -> Sequence[str]:
        """Return whether there is no systemd, or why it cannot run the unit."""
        if shutil.which(SYSTEMCTL) is None:
            return (f"{SYSTEMCTL} does not exist: use pid-file instead of unit",)
        try:
            asked = subprocess.run(self._show, capture_output=True, check=False, timeout=SHOW_SECONDS)  # noqa: S603 - its job
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if asked.returncode:
            why = asked.stderr.decode(errors="replace").strip().splitlines()
            said = f" ({why[0]})" if why else ""
            return (
                f"systemd does not answer{said}: unit {self.name} cannot be stopped; use pid-file instead",
            )
        fault = self._fault(_properties(asked.stdout))
        return (fault,) if fault else ()

    def _fault(self, state: Mapping[str, str]) -> str | None:
        """Return why systemd cannot run it: it takes what it does not know for a unit that is down."""
        load = state.get("LoadState")
        if load == NOT_FOUND:
            return f"systemd knows no unit {self.name}: it is misspelt, or not installed"
        if load in BROKEN:
            return f"systemd cannot load the unit {self.name}: `systemctl status {self.name}` says why"
        return None

    async def _settled(self) -> Mapping[str, str]:
        """Return its state, once it is neither up nor down for a moment only."""
        while (state := await self._state()).get("ActiveState") == GOING_DOWN:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(LOOK_EVERY)
        return state

    @property
    def _show(self) -> Sequence[str]:
        return (SYSTEMCTL, "show", "--property=ActiveState", "--property=LoadState", "--", self.name)

    async def _state(self) -> Mapping[str, str]:
        """Ask systemd; empty if it does not say."""
        try:
            asking = await asyncio.create_subprocess_exec(*self._show, stdout=PIPE, stderr=DEVNULL)
        except OSError:
            return {}
        try:
            shown, _ = await asking.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                asking.kill()
        return _properties(shown)


def _properties(shown: bytes) -> dict[str, str]:
    """Read lines of NAME=VALUE."""
    lines = (line.partition("=") for line in shown.decode(errors="replace").splitlines())
    return {name: value for name, _, value in lines}
