"""Connections that were refused, and why: counted each, logged when it begins and when it is over.

Callers that use a machine's address from another MAC than its own are also recorded.
"""

import asyncio
import logging
from enum import StrEnum

from forewarn.core.basic_types import MachineId
from forewarn.core.errors import ForewarnError
from forewarn.core.model.machine import Machine
from forewarn.guest.settings import GuestCommands

log = logging.getLogger(__name__)

# So long without a refusal, and the limit no longer bites.
CALM_SECONDS = 60.0
# A caller that keeps trying does not fill the history: one record of a machine within this time, in seconds.
RECORD_EVERY = 600.0


class Limit(StrEnum):
    """What there was too much of, or should not be at all."""

    WHOLE = "whole"  # connections of all callers together
    ADDRESS = "address"  # connections of one caller
    DESCRIPTORS = "descriptors"  # open files of the process
    MAC = "mac"  # callers that use a machine's address, and are not that machine
    PROXY = "proxy"  # callers that say whom they call for, and may not, or cannot show it


class Refusals:
    """What the limits of one port have refused. Lives on that port's loop; any thread may read the counts."""

    def __init__(self, plane: str, *, calm: float = CALM_SECONDS) -> None:
        self.plane = plane
        self.counts = dict.fromkeys(Limit, 0)
        self._calm = calm
        self._last: dict[Limit, float] = {}  # when each limit that bites has last refused
        self._before: dict[Limit, int] = {}

    def note(self, limit: Limit, why: str) -> None:
        """Count a refusal; the first after a calm time is logged."""
        loop = asyncio.get_running_loop()
        if limit not in self._last:
            log.warning("%s connections are refused: %s", self.plane, why)
            self._before[limit] = self.counts[limit]
            loop.call_later(self._calm, self._look, limit)
        self.counts[limit] += 1
        self._last[limit] = loop.time()

    def _look(self, limit: Limit) -> None:
        """Log that a limit no longer bites, or look again when that may be so."""
        loop = asyncio.get_running_loop()
        left = self._last[limit] + self._calm - loop.time()
        if left > 0:
            loop.call_later(left, self._look, limit)
            return
        del self._last[limit]
        refused = self.counts[limit] - self._before.pop(limit)
        log.info("%s connections are no longer refused (limit %s): %d were", self.plane, limit, refused)


class Impostors:
    """Takes note of callers that use a machine's address from another MAC. Lives on the guest loop."""

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
