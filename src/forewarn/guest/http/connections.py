"""What all connections share, and the list of them."""

import asyncio
from contextlib import suppress
from typing import Protocol

from forewarn.guest.guest_service import GuestService
from forewarn.guest.http.request_cache import RequestCache

# Long enough for the loop to take up what the system has accepted.
ARRIVAL = 0.02


class OpenConnection(Protocol):
    """A connection, as far as its end is concerned."""

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
        self.known = RequestCache(
            capacity=limits.known_bytes, longest=limits.known_request_bytes, share=limits.known_share
        )
        self.connections: set[OpenConnection] = set()
        self.leaving = False  # the service is about to end
        self._empty = asyncio.Event()

    def forget(self, connection: OpenConnection) -> None:
        """Strike a connection that has ended from the list."""
        self.connections.discard(connection)
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
