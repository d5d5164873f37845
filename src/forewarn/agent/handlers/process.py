"""`process`: stop a program gracefully and start it again: a unit of systemd, or that of a pid file."""

import asyncio
import contextlib
import shutil
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.agent.handlers.exec import command, refused
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Command, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.sdk.platform import system
from forewarn.wire import fields

LOOK_EVERY = 0.1
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

NOT_RUNNING = Ready("it does not run")
LEFT_DOWN = Ready("it did not run before the event, and stays so")


def _unit(value: object) -> str:
    if (
        not isinstance(value, str)
        or not value
        or value.startswith("-")
        or any(each.isspace() for each in value)
    ):
        raise Invalid(f"expected the name of a unit, as nginx.service, got {fields.shown(value)}")
    return value


def _pid_file(value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise Invalid(f"expected the path of a file, from the root, got {fields.shown(value)}")
    return Path(value)


def _signal(value: object) -> int:
    known = {each.name: each for each in signal.Signals}
    if not isinstance(value, str) or value not in known:
        raise Invalid(f"expected the name of a signal, as SIGTERM or SIGQUIT, got {fields.shown(value)}")
    return int(known[value])


READERS = {"unit": _unit, "pid_file": _pid_file, "signal": _signal, "start": command}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Make a handler that stops and starts."""
    if ("unit" in options) == ("pid_file" in options):
        raise Invalid("expected either unit or pid-file" + (", got both" if "unit" in options else ""))
    if "unit" in options:
        if "signal" in options or "start" in options:
            raise Invalid("signal and start: systemd knows them; leave them out with unit")
        return [Declared(does=Unit(options["unit"]))]
    by = options.get("signal", int(signal.SIGTERM))
    does = PidFile(path=options["pid_file"], signal=by, start=options.get("start"))
    absent = f"{does.path} does not exist: it does not run now, or the name is wrong"
    return [Declared(does=does, remarks=() if does.path.exists() else (absent,))]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """The process whose number is in a file."""

    path: Path
    signal: int
    start: Sequence[str] | None

    async def prepare(self, task: Task) -> Outcome:
        """Ask it to end, and wait until it has."""
        pid = self._pid()
        started = None if pid is None else system.process_started(pid)
        if pid is None or started is None:
            return NOT_RUNNING
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
        pid = self._pid()
        if self.start is None or (pid is not None and system.process_started(pid) is not None):
            return Ready()
        if refusal := refused(self.start[0]):
            return Never(refusal)
        return await task.run(Command(words=self.start))

    def describe(self, side: Side) -> str:
        """Describe what it would do."""
        if side is Side.PREPARE:
            return f"ends the process of {self.path} with {signal.Signals(self.signal).name}"
        return f"runs {' '.join(self.start)}, if it ran before" if self.start else ""

    def problems(self) -> Sequence[str]:
        """Return whether the file cannot be written, or the program that starts it would be refused."""
        folder = self.path.parent
        found = (
            None if folder.is_dir() else f"pid-file: the folder {folder} does not exist",
            refused(self.start[0]) if self.start else None,
        )
        return [problem for problem in found if problem]

    def _pid(self) -> int | None:
        try:
            written = self.path.read_text(encoding="ascii").split()
            return int(written[0])
        except (OSError, ValueError, IndexError):
            return None
