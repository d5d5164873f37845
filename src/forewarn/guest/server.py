"""The guest endpoint: start, apply changes, stop. Everything here runs on the guest loop."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from forewarn.clock import Clock
from forewarn.core.feed import Delta
from forewarn.core.rehearsal_ledger import GuestLedger
from forewarn.guest.answers import TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.http.listeners import Listen, Listeners
from forewarn.guest.http.open_connections import OpenConnections
from forewarn.guest.rehearsal import GuestRehearsal
from forewarn.guest.request_handler import RequestHandler
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
        """Create the endpoint on the loop that it will run on; `new_id` makes GUIDs."""
        times = TimeCache(asyncio.get_running_loop(), clock)
        self._handler = RequestHandler(board, commands, times=times, settings=settings, new_id=new_id)
        self._board = board
        self._limits = settings.limits
        self.connections = OpenConnections(self._handler)
        self.listeners = Listeners(self.connections, board)
        self._is_short = False  # whether the fleet has more machines than connections are possible

    async def start(self, listen: Sequence[Listen]) -> None:
        """Listen; raise Conflict that names the address or machine whose port cannot be opened."""
        await self.listeners.start(listen)

    async def apply(self, deltas: Sequence[Delta]) -> None:
        """Apply changes to the board; return when the machines' own ports are open."""
        for delta in deltas:
            self._board.apply(delta)
        await self.listeners.follow()
        self.check_room()

    def check_room(self) -> None:
        """Warn once if the fleet has more machines than connections are possible."""
        room = self.connections.room
        if len(self._board) > room and not self._is_short:
            log.warning(
                "there is room for the connections of %d machines, and the fleet has %d: raise the limit on "
                "file descriptors (ulimit -n; LimitNOFILE= of a unit) or [guest] connections",
                room,
                len(self._board),
            )
        self._is_short = len(self._board) > room

    def rehearse(self, ledger: GuestLedger) -> GuestRehearsal:
        """Begin a rehearsal without machines."""
        return GuestRehearsal(self._board, ledger)

    def time_moved(self) -> None:
        """Wake the requests that wait for service time, after an advance of the clock."""
        self._board.waiting.wake_all()

    def counters(self) -> dict[str, float]:
        """Return the counters since the start, for the metrics. Thread-safe."""
        handler = self._handler
        return {"polls": handler.polls, "approvals": handler.approvals, "errors": handler.errors.count}

    async def stop(self, *, drain: float = 0.0) -> None:
        """Answer the requests that wait or arrive within `drain` seconds; then close.

        Connections are accepted until then, because the system resets accepted connections that are not read.
        """
        await self.connections.drain(within=drain)
        self.listeners.close()
        await self.connections.finish(within=self._limits.stop_seconds)
        self.connections.link_layer.close()
