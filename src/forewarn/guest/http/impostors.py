"""Callers that use a machine's address from another MAC than its own: counted, logged, and recorded."""

import asyncio
import logging

from forewarn.core.errors import ForewarnError
from forewarn.core.model.machine import Machine
from forewarn.core.words import MachineId
from forewarn.guest.commands import GuestCommands
from forewarn.guest.http.refusals import Limit, Refusals

log = logging.getLogger(__name__)

# Whoever goes on trying fills no history: one record of a machine within this time, in seconds.
RECORD_EVERY = 600.0


class Impostors:
    """Takes note of them. Lives on the guest loop."""

    def __init__(self, commands: GuestCommands, refusals: Refusals) -> None:
        self._commands = commands
        self._refusals = refusals
        self._recorded: dict[MachineId, float] = {}  # when last, in real time
        self._recording: set[asyncio.Task[None]] = set()

    def note(self, machine: Machine, *, mac: str, address: str) -> None:
        """Take note of a connection that is not a machine's own."""
        why = f"{address} is used from MAC {mac}, and machine {machine.name} has {machine.mac}"
        self._refusals.note(Limit.MAC, why)
        now = asyncio.get_running_loop().time()
        if now - self._recorded.get(machine.id, -RECORD_EVERY) < RECORD_EVERY:
            return
        self._recorded = {known: at for known, at in self._recorded.items() if now - at < RECORD_EVERY}
        self._recorded[machine.id] = now
        task = asyncio.ensure_future(self._record(machine, mac=mac, address=address))
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _record(self, machine: Machine, *, mac: str, address: str) -> None:
        try:
            await self._commands.record_impostor(machine.id, mac=mac, address=address)
        except ForewarnError as error:
            self._recorded.pop(machine.id, None)  # the next one is tried again
            log.warning("a caller that poses as machine %s is not recorded: %s", machine.name, error)
