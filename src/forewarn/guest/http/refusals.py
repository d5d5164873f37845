"""Refused connections: counted, and logged when refusals begin and end. Spoofed addresses are recorded."""

import asyncio
import logging
from enum import StrEnum

from forewarn.core.basic_types import MachineId
from forewarn.core.errors import ForewarnError
from forewarn.core.model.machine import Machine
from forewarn.guest.settings import GuestCommands

log = logging.getLogger(__name__)

# After this time without a refusal, refusals count as over.
CALM_SECONDS = 60.0
# The shortest time between two records of a machine, so that a persistent caller does not fill the history.
RECORD_EVERY = 600.0


class Limit(StrEnum):
    """The reason of a refusal."""

    WHOLE = "whole"  # too many connections in all
    ADDRESS = "address"  # too many connections of one caller
    DESCRIPTORS = "descriptors"  # no file descriptor is left
    MAC = "mac"  # a machine's address with another MAC
    PROXY = "proxy"  # a metadata proxy that is not configured or has no valid signature


class Refusals:
    """Counts the refusals of one port. Lives on that port's loop; any thread may read the counts."""

    def __init__(self, port: str, *, calm: float = CALM_SECONDS) -> None:
        self.port = port
        self.counts = dict.fromkeys(Limit, 0)
        self._calm = calm
        self._last: dict[Limit, float] = {}  # the time of the last refusal, for refusals that are not over
        self._before: dict[Limit, int] = {}

    def note(self, limit: Limit, why: str) -> None:
        """Count a refusal; log the first one after a calm time."""
        loop = asyncio.get_running_loop()
        if limit not in self._last:
            log.warning("%s connections are refused: %s", self.port, why)
            self._before[limit] = self.counts[limit]
            loop.call_later(self._calm, self._look, limit)
        self.counts[limit] += 1
        self._last[limit] = loop.time()

    def _look(self, limit: Limit) -> None:
        """Log the end of refusals, or check again later."""
        loop = asyncio.get_running_loop()
        left = self._last[limit] + self._calm - loop.time()
        if left > 0:
            loop.call_later(left, self._look, limit)
            return
        del self._last[limit]
        refused = self.counts[limit] - self._before.pop(limit)
        log.info("%s connections are no longer refused (limit %s): %d were", self.port, limit, refused)


class Impostors:
    """Counts and records callers that use a machine's address from another MAC. Lives on the guest loop."""

    def __init__(self, commands: GuestCommands, refusals: Refusals) -> None:
        self._commands = commands
        self._refusals = refusals
        self._recorded: dict[MachineId, float] = {}  # the real time of the last record
        self._recording: set[asyncio.Task[None]] = set()

    def note(self, machine: Machine, *, mac: str, address: str) -> None:
        """Count a connection with a spoofed address, and record it if the last record is old enough."""
        why = f"{address} is used from MAC {mac}, but machine {machine.name} has {machine.mac}"
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
            self._recorded.pop(machine.id, None)  # so that the next connection is recorded
            log.warning("cannot record a spoofed address of machine %s: %s", machine.name, error)
