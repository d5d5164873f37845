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

from forewarn.agent.handlers.exec import command
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handlers.pid_file import LEFT_DOWN, LOOK_EVERY, NOT_RUNNING, PidFile
from forewarn.agent.handling import Command, Never, Outcome, Side, Task
from forewarn.core.errors import Invalid
from forewarn.wire.texts import shown

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
