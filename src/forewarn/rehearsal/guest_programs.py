"""Programs that are run as guests: started with their endpoint, listened to, and ended."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from forewarn.clock import monotonic
from forewarn.core.errors import Invalid
from forewarn.core.rehearsal_ledger import Note
from forewarn.rehearsal.scenario import GuestCommand
from forewarn.sdk.platform.systemd import EVENTS_KEY

Ended: TypeAlias = Callable[[str, int], None]  # whose program, and with which code

# For a program to end when it is asked to; real seconds.
PATIENCE = 5.0
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
                start_new_session=True,  # so that what it has started can be ended with it
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
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
                break
        self._signal(signal.SIGKILL)  # what it has left behind
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

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        machine = self._guest.machine
        if process.stdout is not None:
            async for line in process.stdout:
                self._note(machine, f"| {line.decode(errors='replace').rstrip()}")
        code = await process.wait()
        if code >= 0:
            self._ended(machine, code)
