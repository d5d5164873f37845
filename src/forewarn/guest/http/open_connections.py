"""The open connections and their limit, the cache of requests, and the timer of a connection."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Protocol

from forewarn.core.basic_types import MachineId
from forewarn.guest.board.members import Allowance
from forewarn.guest.guest_requests import Poll
from forewarn.guest.http.link_layer import LinkLayer
from forewarn.guest.http.refusals import Impostors, Limit, Refusals
from forewarn.guest.request_handler import RequestHandler

# The memory of an entry besides its bytes: the poll with its tags, and the entries of two tables.
OVERHEAD = 512
# How many tags a cached poll may have: clients usually send one, that of their document.
MOST_TAGS = 2


class RequestCache:
    """Maps the bytes of a poll to the parsed poll, with limits on its memory and on each machine's entries.

    It caches neither callers nor answers: those are looked up for each request. A machine over its share
    replaces its own oldest entry.
    """

    __slots__ = ("_by_machine", "_capacity", "_longest", "_owners", "_polls", "_share", "get", "size")

    def __init__(self, *, capacity: int, longest: int, share: int) -> None:
        self._capacity = capacity  # in bytes
        self._longest = longest
        self._share = share
        self._polls: dict[bytes, Poll] = {}
        self._owners: dict[bytes, MachineId] = {}
        self._by_machine: dict[MachineId, deque[bytes]] = {}  # oldest first
        self.size = 0  # bytes
        self.get = self._polls.get  # saves a call on the fast path

    def __len__(self) -> int:
        return len(self._polls)

    def add(self, data: bytes, poll: Poll, *, by: MachineId) -> None:
        """Cache a new, short poll that does not wait; evict the oldest entries to make room."""
        is_simple = poll.wait is None and len(poll.match) <= MOST_TAGS
        if not is_simple or len(data) > self._longest or data in self._polls:
            return
        own = self._by_machine.setdefault(by, deque())
        if len(own) >= self._share:
            self._evict(own[0])
        self._by_machine[by] = own
        own.append(data)
        self._polls[data] = poll
        self._owners[data] = by
        self.size += len(data) + OVERHEAD
        while self.size > self._capacity:
            self._evict(next(iter(self._polls)))

    def _evict(self, data: bytes) -> None:
        """Remove a request, which must be the oldest of its machine."""
        del self._polls[data]
        owner = self._owners.pop(data)
        own = self._by_machine[owner]
        own.popleft()
        if not own:
            del self._by_machine[owner]
        self.size -= len(data) + OVERHEAD


class DeadlineTimer:
    """Calls `check` when a deadline may have passed; `check` returns the next deadline, or None."""

    __slots__ = ("_at", "_check", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, check: Callable[[], float | None]) -> None:
        self._loop = loop
        self._check = check
        self._at = inf
        self._handle: asyncio.TimerHandle | None = None

    def by(self, deadline: float) -> None:
        """Call `check` no later than this time of the loop."""
        if deadline >= self._at:
            return
        self.stop()
        self._at = deadline
        self._handle = self._loop.call_at(deadline, self._fire)

    def stop(self) -> None:
        """Cancel the timer."""
        self._at = inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self.stop()
        deadline = self._check()
        if deadline is not None:
            self.by(deadline)


# Long enough for the loop to accept the connections that the system has accepted.
ARRIVAL = 0.02


class OpenConnection(Protocol):
    """The part of a connection that `OpenConnections` needs."""

    allowance: Allowance  # the limits that this connection counts towards

    def leave(self) -> None:
        """End long polls, and close after the next answer."""
        ...

    def finish(self) -> None:
        """Answer open requests, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class OpenConnections:
    """All connections of guests, with the handler and the request cache that they share."""

    def __init__(self, handler: RequestHandler) -> None:
        limits = handler.settings.limits
        self.handler = handler
        self.known = RequestCache(
            capacity=limits.known_bytes, longest=limits.known_request_bytes, share=limits.known_share
        )
        self.connections: set[OpenConnection] = set()
        self.leaving = False  # the server is about to end
        self.refusals = Refusals("guest")
        self.link_layer = LinkLayer(checked=handler.settings.check_mac)
        self.impostors = Impostors(handler.commands, self.refusals)
        self.listening = 0  # listening sockets take descriptors, too
        self._most = limits.all_connections
        # All but the first connection of each machine, and those of unknown callers; oldest first.
        self._spare: dict[OpenConnection, None] = {}
        self._empty = asyncio.Event()

    @property
    def room(self) -> int:
        """How many connections are possible at once."""
        return max(1, self._most - self.listening)

    def admit(self, connection: OpenConnection) -> bool:
        """Add a connection, replacing a spare one if there is no room; return False if it must close."""
        is_spare = self._is_spare(connection)
        if len(self.connections) >= self.room:
            self.refusals.note(Limit.WHOLE, f"all {self.room} are in use")
            oldest = None if is_spare else self._oldest_spare()
            if oldest is None:
                return False
            oldest.abort()
        self.connections.add(connection)
        self.recount(connection)
        return True

    def recount(self, connection: OpenConnection) -> None:
        """Update whether a connection is spare, after its caller has changed."""
        if self._is_spare(connection):
            self._spare[connection] = None

    def _is_spare(self, connection: OpenConnection) -> bool:
        """Whether a connection may be replaced: each machine keeps its first one."""
        allowance = connection.allowance
        return allowance is self.handler.board.unknown_callers or allowance.connections > 1

    def _oldest_spare(self) -> OpenConnection | None:
        while self._spare:
            oldest = next(iter(self._spare))
            del self._spare[oldest]
            if oldest in self.connections and self._is_spare(oldest):
                return oldest
        return None

    def forget(self, connection: OpenConnection) -> None:
        """Remove a connection that has ended."""
        self.connections.discard(connection)
        self._spare.pop(connection, None)
        if not self.connections:
            self._empty.set()

    async def drain(self, *, within: float) -> None:
        """End long polls, and let each connection close after its next answer.

        Requests in transit are still answered, because clients report an aborted connection as an error.
        """
        self.leaving = True
        for connection in tuple(self.connections):
            connection.leave()
        await asyncio.sleep(min(within, ARRIVAL))
        await self._ended(within=within)

    async def finish(self, *, within: float) -> None:
        """Answer open requests and close; abort connections that take too long."""
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
