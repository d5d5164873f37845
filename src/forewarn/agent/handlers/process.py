"""`process`: stop a program gracefully and start it again: a unit of systemd, or that of a pid file."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.agent.handlers.exec import command, refused
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Command, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.sdk import platform
from forewarn.wire import fields

LOOK_EVERY = 0.1
SYSTEMCTL = "systemctl"


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
    return [Declared(does=PidFile(path=options["pid_file"], signal=by, start=options.get("start")))]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of systemd, which knows how to stop it gracefully."""

    name: str

    async def prepare(self, task: Task) -> Outcome:
        """Stop it, and wait until it has."""
        return await task.run(Command(words=(SYSTEMCTL, "stop", "--", self.name)))

    async def recover(self, task: Task) -> Outcome:
        """Start it."""
        return await task.run(Command(words=(SYSTEMCTL, "start", "--", self.name)))

    def describe(self, side: Side) -> str:
        """Say what it would do."""
        return f"{'stops' if side is Side.PREPARE else 'starts'} the unit {self.name}"

    def problems(self) -> Sequence[str]:
        """Say whether there is no systemd."""
        return (
            () if shutil.which(SYSTEMCTL) else (f"{SYSTEMCTL} does not exist: use pid-file instead of unit",)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """The process whose number is in a file."""

    path: Path
    signal: int
    start: Sequence[str] | None

    async def prepare(self, task: Task) -> Outcome:
        """Ask it to end, and wait until it has."""
        pid = self._pid()
        started = None if pid is None else platform.process_started(pid)
        if pid is None or started is None:
            return Ready("it does not run")
        try:
            os.kill(pid, self.signal)
        except ProcessLookupError:
            return Ready("it does not run")
        except PermissionError:
            return Never(f"process {pid} of {self.path} may not be ended by the agent")
        while platform.process_started(pid) == started:  # noqa: ASYNC110 - nobody announces the end of a process
            await asyncio.sleep(LOOK_EVERY)
        return Ready(f"process {pid} has ended")

    async def recover(self, task: Task) -> Outcome:
        """Start it, unless it runs."""
        pid = self._pid()
        if self.start is None or (pid is not None and platform.process_started(pid) is not None):
            return Ready()
        if refusal := refused(self.start[0]):
            return Never(refusal)
        return await task.run(Command(words=self.start))

    def describe(self, side: Side) -> str:
        """Say what it would do."""
        if side is Side.PREPARE:
            return f"ends the process of {self.path} with {signal.Signals(self.signal).name}"
        return f"runs {' '.join(self.start)}" if self.start else ""

    def problems(self) -> Sequence[str]:
        """Say whether the program that starts it would be refused."""
        problem = refused(self.start[0]) if self.start else None
        return (problem,) if problem else ()

    def _pid(self) -> int | None:
        try:
            written = self.path.read_text(encoding="ascii").split()
            return int(written[0])
        except (OSError, ValueError, IndexError):
            return None
