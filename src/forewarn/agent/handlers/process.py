"""`process`: stop and restart a program gracefully: a systemd unit, or the process of a pid file.

A killed program leaves its pid file behind, and another process may get its pid, at the latest after a
reboot. So the handler signals a process only if the process started before the file was written.
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
# Start times of processes and modification times of files may be rounded to seconds.
TOLERANCE_SECONDS = 1.0

NOT_RUNNING = Ready("it is not running")
LEFT_DOWN = Ready("it was not running before the event and stays stopped")
SYSTEMCTL = "systemctl"
# systemd's states of a stopped unit.
DOWN = ("inactive", "failed")
# A unit that stops, or restarts.
STOPPING = "deactivating"
# systemd's states of a unit that it cannot run. A masked unit is stopped on purpose, which is no error.
NOT_FOUND = "not-found"
BROKEN = ("bad-setting", "error")
# The timeout of systemctl in config checks.
SHOW_SECONDS = 5.0


class Found(NamedTuple):
    """The process that wrote a pid file."""

    pid: int
    started: str


class OtherProcess(NamedTuple):
    """A process that has the pid of a file but did not write it, or cannot be identified."""

    why: str


NamedProcess: TypeAlias = Found | OtherProcess | None  # None: no process has the pid


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """The process of a pid file."""

    path: Path
    signal: int
    start: Sequence[str] | None
    executable: Path | None = None

    async def prepare(self, task: Task) -> Outcome:
        """Signal the process and wait until it has ended."""
        match self.named():
            case None:
                return NOT_RUNNING
            case OtherProcess(why):
                return Never(f"no process was signalled: {why}")
            case Found(pid, started):
                return await self._end(pid, started, task)

    async def _end(self, pid: int, started: str, task: Task) -> Outcome:
        task.owe(str(self.path))
        try:
            system.ask_to_end(pid, self.signal)
        except ProcessLookupError:
            return NOT_RUNNING
        except PermissionError:
            return Never(f"the agent may not signal process {pid} of {self.path}")
        while system.process_started(pid) == started:  # noqa: ASYNC110 - the end of another's child is not announced
            await asyncio.sleep(LOOK_EVERY)
        return Ready(f"process {pid} has ended")

    async def recover(self, task: Task) -> Outcome:
        """Start the program if this handler has stopped it and it does not run."""
        if not task.owes(str(self.path)):
            return LEFT_DOWN
        if self.start is None or isinstance(self.named(), Found):
            return Ready()
        if refusal := refused(self.start[0]):
            return Never(refusal)
        return await task.run(Command(words=self.start))

    def describe(self, side: Side) -> str:
        """Describe the action."""
        if side is Side.PREPARE:
            which = f", if it runs {self.executable}" if self.executable else ""
            return f"stops the process of {self.path} with {signal.Signals(self.signal).name}{which}"
        return f"runs {' '.join(self.start)} if the process ran before" if self.start else ""

    def problems(self) -> Sequence[str]:
        """Return missing folders and programs, and programs that must not run."""
        folder = self.path.parent
        absent = self.executable is not None and not self.executable.exists()
        found = (
            None if folder.is_dir() else f"pid-file: the folder {folder} does not exist",
            f"executable: {self.executable} does not exist" if absent else None,
            refused(self.start[0]) if self.start else None,
        )
        return [problem for problem in found if problem]

    def remarks(self) -> Sequence[str]:
        """Return warnings about the file's current state."""
        if not self.path.exists():
            return (f"{self.path} does not exist: the program is not running, or the path is wrong",)
        named = self.named()
        return (f"{named.why}: no process would be signalled",) if isinstance(named, OtherProcess) else ()

    def named(self) -> NamedProcess:
        """Find the process with the file's pid, and check that it wrote the file."""
        try:
            # Pid and time from one open file, because another may replace it.
            with self.path.open(encoding="ascii") as file:
                pid, written = int(file.read().split()[0]), os.fstat(file.fileno()).st_mtime
        except (OSError, ValueError, IndexError):
            return None
        started, age = system.process_started(pid), system.process_age(pid)
        if started is None or age is None:
            return None
        after = SystemClock().now().timestamp() - written - age
        if after > TOLERANCE_SECONDS:
            return OtherProcess(
                f"process {pid} of {self.path} started {format_span_briefly(after)} after the file was "
                "written, so it is another process"
            )
        return self._other_program(pid) or Found(pid, started)

    def _other_program(self, pid: int) -> OtherProcess | None:
        if self.executable is None:
            return None
        runs = system.process_executable(pid)
        if runs is None:
            return OtherProcess(
                f"the agent's user may not see which program process {pid} of {self.path} runs"
            )
        if runs == self.executable.resolve():
            return None
        return OtherProcess(f"process {pid} of {self.path} runs {runs}, not {self.executable}")


def _unit(value: object) -> str:
    if (
        not isinstance(value, str)
        or not value
        or value.startswith("-")
        or any(each.isspace() for each in value)
    ):
        raise Invalid(f"expected the name of a unit, such as nginx.service, got {shown(value)}")
    return value


def _path(value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise Invalid(f"expected the absolute path of a file, got {shown(value)}")
    return Path(value)


def _signal(value: object) -> int:
    known = {each.name: each for each in signal.Signals}
    if not isinstance(value, str) or value not in known:
        raise Invalid(f"expected the name of a signal, such as SIGTERM or SIGQUIT, got {shown(value)}")
    return int(known[value])


READERS = {"unit": _unit, "pid_file": _path, "executable": _path, "signal": _signal, "start": command}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create the handler of a unit or of a pid file."""
    if ("unit" in options) == ("pid_file" in options):
        raise Invalid("expected either unit or pid-file" + (", got both" if "unit" in options else ""))
    if "unit" in options:
        if needless := [name for name in ("signal", "start", "executable") if name in options]:
            raise Invalid(
                f"{' and '.join(needless)}: not allowed with unit, because systemd has these settings"
            )
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
    """A systemd unit."""

    name: str

    async def prepare(self, task: Task) -> Outcome:
        """Stop the unit and wait until it has stopped."""
        if not task.owes(self.name):
            state = await self._settled()
            if state.get("ActiveState") in DOWN:
                fault = self._fault(state)
                return Never(fault) if fault else NOT_RUNNING
            task.owe(self.name)
        return await task.run(Command(words=(SYSTEMCTL, "stop", "--", self.name)))

    async def recover(self, task: Task) -> Outcome:
        """Start the unit if this handler has stopped it."""
        if not task.owes(self.name):
            return LEFT_DOWN
        return await task.run(Command(words=(SYSTEMCTL, "start", "--", self.name)))

    def describe(self, side: Side) -> str:
        """Describe the action."""
        if side is Side.PREPARE:
            return f"stops the unit {self.name}"
        return f"starts the unit {self.name} if it ran before"

    def problems(self) -> Sequence[str]:
        """Return why systemd is missing or cannot run the unit."""
        if shutil.which(SYSTEMCTL) is None:
            return (f"{SYSTEMCTL} does not exist: use pid-file instead of unit",)
        try:
            asked = subprocess.run(self._show, capture_output=True, check=False, timeout=SHOW_SECONDS)  # noqa: S603 - its job
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if asked.returncode:
            why = asked.stderr.decode(errors="replace").strip().splitlines()
            reason = f" ({why[0]})" if why else ""
            return (
                f"systemd does not answer{reason}: unit {self.name} cannot be stopped; use pid-file instead",
            )
        fault = self._fault(_properties(asked.stdout))
        return (fault,) if fault else ()

    def _fault(self, state: Mapping[str, str]) -> str | None:
        """Return why systemd cannot run the unit; systemd reports an unknown unit as stopped."""
        load = state.get("LoadState")
        if load == NOT_FOUND:
            return f"systemd has no unit {self.name}: the name is misspelled, or the unit is not installed"
        if load in BROKEN:
            return (
                f"systemd cannot load the unit {self.name}: `systemctl status {self.name}` shows the reason"
            )
        return None

    async def _settled(self) -> Mapping[str, str]:
        """Return the unit's state once it does not stop or restart any more."""
        while (state := await self._state()).get("ActiveState") == STOPPING:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(LOOK_EVERY)
        return state

    @property
    def _show(self) -> Sequence[str]:
        return (SYSTEMCTL, "show", "--property=ActiveState", "--property=LoadState", "--", self.name)

    async def _state(self) -> Mapping[str, str]:
        """Return the unit's properties; none if systemd does not answer."""
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
    """Parse lines of NAME=VALUE."""
    lines = (line.partition("=") for line in shown.decode(errors="replace").splitlines())
    return {name: value for name, _, value in lines}
