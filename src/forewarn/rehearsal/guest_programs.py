"""Programs that are run as guests: started with their endpoint, listened to, and ended."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TypeAlias

from forewarn.control.rehearsals.ledger import Note
from forewarn.core.errors import Invalid
from forewarn.rehearsal.scenario import GuestCommand

Ended: TypeAlias = Callable[[str, int], None]  # whose program, and with which code

# For a program to end when it is asked to; real seconds.
PATIENCE = 5.0


class GuestProgram:
    """A program that runs as the guest of a machine."""

    def __init__(self, guest: GuestCommand, endpoint: str, *, note: Note, ended: Ended) -> None:
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
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                env={**os.environ, "FOREWARN_ENDPOINT": endpoint, "FOREWARN_MACHINE": machine},
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
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> None:
        """End it, and all it has started."""
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
