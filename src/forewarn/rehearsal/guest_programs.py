"""Programs that are run as guests: started with their endpoint, listened to, followed to the end, and ended.

A guest that tells it, as forewarn's agent tells systemd, is through with a scenario when it cares for no
event any more. One that tells nothing is through when it asks again after an answer without the events: most
guests do one thing after the other.
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
from forewarn.rehearsal.scenario import FaultStep, GuestCommand, Scenario

Ended: TypeAlias = Callable[[str, int], None]  # whose program, and with which code

# How often a program that can is to tell how it is: twice in this time, as sd_watchdog_enabled(3) has it.
TELL_WITHIN = 0.5
LONGEST_MESSAGE = 4096


@dataclass(frozen=True, slots=True)
class Told:
    """What a program has told of itself last, as it would tell systemd."""

    events: int  # that it cares for
    at: float  # real seconds


class GuestProgram:
    """A program that runs as the guest of a machine."""

    def __init__(
        self, guest: GuestCommand, endpoint: str, *, note: Note, ended: Ended, socket_: Path
    ) -> None:
        """Take where to open a socket on which the program may tell how it is."""
        self.told: Told | None = None
        self._socket = socket_
        self._hearing: socket.socket | None = None
        self._guest = guest
        self._endpoint = endpoint
        self._note = note
        self._ended = ended
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run it; Invalid if there is no such program."""
        endpoint, machine = self._endpoint, self._guest.machine
        words = [
            word.replace("{endpoint}", endpoint).replace("{machine}", machine) for word in self._guest.command
        ]
        self._hear()
        told = {"NOTIFY_SOCKET": str(self._socket), "WATCHDOG_USEC": str(int(TELL_WITHIN * 1e6))}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                env={**os.environ, "FOREWARN_ENDPOINT": endpoint, "FOREWARN_MACHINE": machine, **told},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                **system.own_group(),
            )
        except OSError as error:
            why = error.strerror
            raise Invalid(f"guest of {machine}: {words[0]!r} cannot be run: {why}") from None
        self._listening = asyncio.create_task(self._listen(self._process))

    @property
    def machine(self) -> str:
        """Whose guest it is."""
        return self._guest.machine

    @property
    def exit_code(self) -> int | None:
        """The code with which it has ended by itself."""
        code = None if self._process is None else self._process.returncode
        return None if code is None or code < 0 else code

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> None:
        """End it, and all it has started."""
        if self._hearing is not None:
            asyncio.get_running_loop().remove_reader(self._hearing.fileno())
            self._hearing.close()
        if self._process is None:
            return
        await end_group(self._process.pid, self._process.wait)
        if self._listening is not None:
            await self._listening

    def _hear(self) -> None:
        """Listen to what the program tells of itself."""
        self._hearing = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._hearing.setblocking(False)  # noqa: FBT003 - the library has it so
        self._hearing.bind(str(self._socket))
        asyncio.get_running_loop().add_reader(self._hearing.fileno(), self._heard, self._hearing)

    def _heard(self, hearing: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            for line in hearing.recv(LONGEST_MESSAGE).decode(errors="replace").splitlines():
                key, _, value = line.partition("=")
                if key == EVENTS_KEY and value.isdecimal():
                    self.told = Told(int(value), monotonic())

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        machine = self._guest.machine
        if process.stdout is not None:
            async for line in process.stdout:
                self._note(machine, f"| {line.decode(errors='replace').rstrip()}")
        code = await process.wait()
        if code >= 0:
            self._ended(machine, code)


class GuestRecovery:
    """Follows one guest from the end of the last event on."""

    def __init__(
        self, account: GuestAccount, program: GuestProgram | None, *, events: Collection[str], end: datetime
    ) -> None:
        """Take the program that is run as the guest, the scenario's events, and when all of it was over."""
        self._account = account
        self._program = program
        self._events = frozenset(events)
        self._end = end
        self._answered: datetime | None = None  # without any of the events
        self._answered_at = 0.0  # real seconds

    @property
    def machine(self) -> str:
        """Whose guest it is."""
        return self._account.machine

    @property
    def tells(self) -> bool:
        """Whether the guest tells what it cares for."""
        return self._program is not None and self._program.told is not None

    def answered(self) -> bool:
        """Whether the guest was answered that all is over."""
        sound = self._account.last_sound
        listed = self._events.intersection(self._account.listed)
        if self._answered is None and sound is not None and sound >= self._end and not listed:
            self._answered, self._answered_at = sound, monotonic()
        return self._answered is not None

    def over(self) -> bool:
        """Whether the guest may be ended; one that nobody here has started is not ended at all."""
        if self._program is None:
            return self.answered()
        if not self._program.runs:
            return True
        if not self.answered() or self._answered is None:
            return False
        told = self._program.told
        if told is not None:
            return told.events == 0 and told.at > self._answered_at
        return self._account.last_poll is not None and self._account.last_poll > self._answered

    def worth_waiting(self, scenario: Scenario, gone: Collection[str]) -> bool:
        """Return whether it can recover before it is ended: it is answered, and its machine runs."""
        if self._program is None:
            return False
        if any(_spoils_to_the_end(step, self.machine) for _, step in scenario.fault_steps):
            return False
        return self.tells or self.machine not in gone


def _spoils_to_the_end(step: FaultStep, machine: str) -> bool:
    concerned = not step.fault.machines or machine in step.fault.machines
    return concerned and step.lasts is None and step.fault.calls is None
