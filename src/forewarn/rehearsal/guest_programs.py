"""Programs that run as guests: start them, read their output, follow their recovery, and stop them.

A guest may report the number of its open events, as forewarn's agent reports it to systemd. Such a guest has
recovered when the number is zero. Any other guest has recovered when it polls again after an answer without
the events, because most guests do one thing after the other.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from forewarn.clock import monotonic
from forewarn.core.errors import Invalid
from forewarn.core.rehearsal_ledger import GuestAccount, Note
from forewarn.platform import system
from forewarn.platform.systemd import EVENTS_KEY
from forewarn.programs.program import end_group
from forewarn.rehearsal.scenario import GuestCommand, Scenario

Ended: TypeAlias = Callable[[str, int], None]  # the machine, and the exit code

# A program reports its status twice in this time, according to sd_watchdog_enabled(3).
STATUS_WITHIN = 0.5
LONGEST_MESSAGE = 4096


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The last status report of a program, in the protocol of systemd."""

    events: int  # open events
    at: float  # real seconds


class GuestProgram:
    """A program that runs as the guest of a machine."""

    def __init__(
        self, guest: GuestCommand, endpoint: str, *, note: Note, ended: Ended, socket_: Path
    ) -> None:
        """Take the path of a socket for the status reports of the program."""
        self.status: StatusReport | None = None
        self._socket = socket_
        self._hearing: socket.socket | None = None
        self._guest = guest
        self._endpoint = endpoint
        self._note = note
        self._ended = ended
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the program; Invalid if it cannot be run."""
        endpoint, machine = self._endpoint, self._guest.machine
        words = [
            word.replace("{endpoint}", endpoint).replace("{machine}", machine) for word in self._guest.command
        ]
        self._hear()
        status = {"NOTIFY_SOCKET": str(self._socket), "WATCHDOG_USEC": str(int(STATUS_WITHIN * 1e6))}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                env={**os.environ, "FOREWARN_ENDPOINT": endpoint, "FOREWARN_MACHINE": machine, **status},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                **system.own_group(),
            )
        except OSError as error:
            raise Invalid(f"guest of {machine}: {words[0]!r} cannot be run: {error.strerror}") from None
        self._listening = asyncio.create_task(self._listen(self._process))

    @property
    def machine(self) -> str:
        """The machine of the guest."""
        return self._guest.machine

    @property
    def exit_code(self) -> int | None:
        """The exit code, if the program has ended by itself."""
        code = None if self._process is None else self._process.returncode
        return None if code is None or code < 0 else code

    @property
    def runs(self) -> bool:
        """Whether the program is running."""
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> None:
        """Stop the program and all its children."""
        if self._hearing is not None:
            asyncio.get_running_loop().remove_reader(self._hearing.fileno())
            self._hearing.close()
        if self._process is None:
            return
        await end_group(self._process.pid, self._process.wait)
        if self._listening is not None:
            await self._listening

    def _hear(self) -> None:
        self._hearing = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._hearing.setblocking(False)  # noqa: FBT003 - a positional-only argument
        self._hearing.bind(str(self._socket))
        asyncio.get_running_loop().add_reader(self._hearing.fileno(), self._heard, self._hearing)

    def _heard(self, hearing: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            for line in hearing.recv(LONGEST_MESSAGE).decode(errors="replace").splitlines():
                key, _, value = line.partition("=")
                if key == EVENTS_KEY and value.isdecimal():
                    self.status = StatusReport(int(value), monotonic())

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        machine = self._guest.machine
        if process.stdout is not None:
            async for line in process.stdout:
                self._note(machine, f"| {line.decode(errors='replace').rstrip()}")
        code = await process.wait()
        if code >= 0:
            self._ended(machine, code)


class GuestRecovery:
    """Follows one guest after the end of the last event."""

    def __init__(
        self, account: GuestAccount, program: GuestProgram | None, *, events: Collection[str], end: datetime
    ) -> None:
        """Take the program of the guest, the events of the scenario, and when all of it was over."""
        self._account = account
        self._program = program
        self._events = frozenset(events)
        self._end = end
        self._answered: datetime | None = None  # the first answer without the events
        self._answered_at = 0.0  # real seconds

    @property
    def machine(self) -> str:
        """The machine of the guest."""
        return self._account.machine

    @property
    def reports_status(self) -> bool:
        """Whether the guest reports its open events."""
        return self._program is not None and self._program.status is not None

    def answered(self) -> bool:
        """Return whether the guest has received an answer without the events."""
        sound = self._account.last_sound
        listed = self._events.intersection(self._account.listed)
        if self._answered is None and sound is not None and sound >= self._end and not listed:
            self._answered, self._answered_at = sound, monotonic()
        return self._answered is not None

    def over(self) -> bool:
        """Return whether the guest may be stopped. A guest without a program is not stopped at all."""
        if self._program is None:
            return self.answered()
        if not self._program.runs:
            return True
        if not self.answered() or self._answered is None:
            return False
        status = self._program.status
        if status is not None:
            return status.events == 0 and status.at > self._answered_at
        return self._account.last_poll is not None and self._account.last_poll > self._answered

    def worth_waiting(self, scenario: Scenario, gone: Collection[str]) -> bool:
        """Return whether the guest can recover: it gets valid answers, and its machine runs."""
        if self._program is None:
            return False
        for _, step in scenario.fault_steps:
            lasts_to_the_end = step.lasts is None and step.fault.calls is None
            if lasts_to_the_end and (not step.fault.machines or self.machine in step.fault.machines):
                return False
        return self.reports_status or self.machine not in gone
