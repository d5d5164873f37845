"""What all connections share, the list of them, and who gives way when there is no room for more."""

import asyncio
from contextlib import suppress
from typing import Protocol

from forewarn.guest.guest_service import GuestService
from forewarn.guest.http.impostors import Impostors
from forewarn.guest.http.link_layer import LinkLayer
from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.guest.http.request_cache import RequestCache
from forewarn.guest.rate_limit import Allowance

# Long enough for the loop to take up what the system has accepted.
ARRIVAL = 0.02


class OpenConnection(Protocol):
    """A connection, as far as its end is concerned."""

    allowance: Allowance  # whose connections this one counts to

    def leave(self) -> None:
        """Hold no request any longer, and close after the next answer."""
        ...

    def finish(self) -> None:
        """Give the answers that are due, then close."""
        ...

    def abort(self) -> None:
        """Close now, whatever is due."""
        ...


class OpenConnections:
    """One service, one table of known requests, many connections."""

    def __init__(self, service: GuestService) -> None:
        limits = service.settings.limits
        self.service = service
        self.quick = service.quick
        self.known = RequestCache(
            capacity=limits.known_bytes, longest=limits.known_request_bytes, share=limits.known_share
        )
        self.connections: set[OpenConnection] = set()
        self.leaving = False  # the service is about to end
        self.refusals = Refusals("guest")
        self.link_layer = LinkLayer(checked=service.settings.check_mac)
        self.impostors = Impostors(service.commands, self.refusals)
        self.listening = 0  # sockets that listen take descriptors too
        self._most = limits.all_connections
        # Those that are more than the first of their machine, and all of unknown callers; the oldest first.
        self._spare: dict[OpenConnection, None] = {}
        self._empty = asyncio.Event()

    @property
    def room(self) -> int:
        """How many connections there may be."""
        return max(1, self._most - self.listening)

    def admit(self, connection: OpenConnection) -> bool:
        """Take up a connection, in the place of a spare one if there is no room; False if it must end."""
        is_spare = self._is_spare(connection)
        if len(self.connections) >= self.room:
            self.refusals.note(Limit.WHOLE, f"there are {self.room}, as many as may be")
            oldest = None if is_spare else self._oldest_spare()
            if oldest is None:
                return False
            oldest.abort()
        self.connections.add(connection)
        self.recount(connection)
        return True

    def recount(self, connection: OpenConnection) -> None:
        """Note whether a connection is spare, when its caller has become another."""
        if self._is_spare(connection):
            self._spare[connection] = None

    def _is_spare(self, connection: OpenConnection) -> bool:
        """Return whether a machine's first connection is worth more: no machine is kept out by another."""
        allowance = connection.allowance
        return allowance is self.service.board.unknown_callers or allowance.connections > 1

    def _oldest_spare(self) -> OpenConnection | None:
        while self._spare:
            oldest = next(iter(self._spare))
            del self._spare[oldest]
            if oldest in self.connections and self._is_spare(oldest):
                return oldest
        return None

    def forget(self, connection: OpenConnection) -> None:
        """Strike a connection that has ended from the list."""
        self.connections.discard(connection)
        self._spare.pop(connection, None)
        if not self.connections:
            self._empty.set()

    async def drain(self, *, within: float) -> None:
        """Hold no request any longer, and let each connection end with its next answer.

        What is on its way is still read and answered: a client that is cut off takes that for a fault.
        """
        self.leaving = True
        for connection in tuple(self.connections):
            connection.leave()
        await asyncio.sleep(min(within, ARRIVAL))
        await self._ended(within=within)

    async def finish(self, *, within: float) -> None:
        """Let every connection come to its end, by force if that takes too long."""
        for connection in tuple(self.connections):
            connection.finish()
        await self._ended(within=within)
        for connection in tuple(self.connections):
            connection.abort()

    async def _ended(self, *, within: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.connections:
                    self._empty.clear()
                    await self._empty.wait()
