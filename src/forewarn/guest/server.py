"""The guest endpoint as one thing: start it, keep it up to date, ask who has polled, stop it.

Everything here runs on the guest loop.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from forewarn.clock import Clock
from forewarn.core.basic_types import MachineId
from forewarn.core.feed import Delta
from forewarn.core.rehearsal_ledger import GuestLedger
from forewarn.guest.answers import TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.request_handler import GuestService
from forewarn.guest.http.connections import OpenConnections
from forewarn.guest.http.listeners import Listen, Listeners
from forewarn.guest.http.refusals import Refusals
from forewarn.guest.rehearsal import GuestRehearsal
from forewarn.guest.settings import EndpointSettings, GuestCommands

log = logging.getLogger(__name__)


class GuestServer:
    """Answers guests from a board."""

    def __init__(
        self,
        board: Board,
        commands: GuestCommands,
        *,
        clock: Clock,
        settings: EndpointSettings,
        new_id: Callable[[], str],
    ) -> None:
        """Make it on the loop it will run on; `new_id` makes GUIDs."""
        times = TimeCache(asyncio.get_running_loop(), clock)
        self._service = GuestService(board, commands, times=times, settings=settings, new_id=new_id)
        self._board = board
        self._limits = settings.limits
        self.connections = OpenConnections(self._service)
        self._listeners = Listeners(self.connections, board)
        self._is_short = False  # of connections, for the machines that there are

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        """Where it listens for all machines; a port given as 0 has become a real one."""
        return self._listeners.addresses

    @property
    def proxied(self) -> Sequence[tuple[str, int]]:
        """Where it listens for proxies that call in the place of machines."""
        return self._listeners.proxied

    async def start(self, listen: Sequence[Listen]) -> None:
        """Listen; Conflict names the address or machine whose port cannot be had."""
        await self._listeners.start(listen)

    async def apply(self, deltas: Sequence[Delta]) -> None:
        """Show what has changed; the machines' own ports are open when this returns."""
        for delta in deltas:
            self._board.apply(delta)
        await self._listeners.follow()
        self.check_room()

    def check_room(self) -> None:
        """Warn, once, that the fleet has more machines than can be connected."""
        if len(self._board) > self.room and not self._is_short:
            log.warning(
                "there is room for the connections of %d machines, and the fleet has %d: raise the limit on "
                "file descriptors (ulimit -n; LimitNOFILE= of a unit) or [guest] connections",
                self.room,
                len(self._board),
            )
        self._is_short = len(self._board) > self.room

    async def open_listener(self, machine: MachineId, *, name: str, port: int = 0) -> str:
        """Listen for one machine, on a free port if none is given, and return the URL."""
        return await self._listeners.open_listener(machine, port, name=name)

    @property
    def room(self) -> int:
        """How many connections there may be at once: each machine needs one."""
        return self.connections.room

    @property
    def refusals(self) -> Refusals:
        """What the limits on connections have refused."""
        return self.connections.refusals

    def rehearse(self, ledger: GuestLedger) -> GuestRehearsal:
        """Begin a rehearsal without machines."""
        return GuestRehearsal(self._board, ledger)

    def time_moved(self) -> None:
        """Let requests look again that wait for service time; needed when the clock is turned by hand."""
        self._board.waiting.wake_all()

    def counters(self) -> dict[str, float]:
        """Count what has been answered since the start, for the metrics. Any thread may ask."""
        service = self._service
        return {"polls": service.polls, "approvals": service.approvals, "errors": service.errors.count}

    async def stop(self, *, drain: float = 0.0) -> None:
        """Answer what is held, and what arrives within `drain` seconds; then close.

        Connections are accepted until then: what the system has accepted and nobody reads is reset.
        """
        await self.connections.drain(within=drain)
        self._listeners.close()
        await self.connections.finish(within=self._limits.stop_seconds)
        self.connections.link_layer.close()
