"""What all connections share: the list of them, the limit, known requests, and the kind of timer each has."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Protocol

from forewarn.core.basic_types import MachineId
from forewarn.guest.board.members import Allowance
from forewarn.guest.request_handler import GuestService
from forewarn.guest.http.link_layer import LinkLayer
from forewarn.guest.http.refusals import Impostors, Limit, Refusals
from forewarn.guest.requests import Poll

# What an entry costs beside its bytes: the poll with its tags, and its place in two tables.
OVERHEAD = 512
# A client names the document that it has, seldom one more.
MOST_TAGS = 2


class RequestCache:
    """A table of whole polls by their bytes, with a bound on its memory and a share for each machine.

    It holds what is asked, never who asks or what is answered: those are looked up for each request. A
    machine that has more to teach than its share takes the place of what it taught before, of nobody else.
    """

    __slots__ = ("_capacity", "_longest", "_polls", "_share", "_taught", "_teachers", "get", "size")

    def __init__(self, *, capacity: int, longest: int, share: int) -> None:
        self._capacity = capacity  # in bytes
        self._longest = longest
        self._share = share
        self._polls: dict[bytes, Poll] = {}
        self._teachers: dict[bytes, MachineId] = {}
        self._taught: dict[MachineId, deque[bytes]] = {}
        self.size = 0  # bytes
        self.get = self._polls.get  # no further call between a request and its answer

    def __len__(self) -> int:
        return len(self._polls)

    def learn(self, data: bytes, poll: Poll, *, by: MachineId) -> None:
        """Remember a machine's request if it is short and plain; the one known for longest makes room."""
        if not self._is_worth_it(data, poll):
            return
        taught = self._taught.setdefault(by, deque())
        if len(taught) >= self._share:
            self._forget(taught[0])
        self._taught[by] = taught
        taught.append(data)
        self._polls[data] = poll
        self._teachers[data] = by
        self.size += len(data) + OVERHEAD
        while self.size > self._capacity:
            self._forget(next(iter(self._polls)))

    def _is_worth_it(self, data: bytes, poll: Poll) -> bool:
        """Return whether a request is new, short and of the kind that is answered at once."""
        plain = poll.wait is None and len(poll.match) <= MOST_TAGS
        return plain and len(data) <= self._longest and data not in self._polls

    def _forget(self, data: bytes) -> None:
        """Drop a request; it is the first that its teacher has taught."""
        del self._polls[data]
        teacher = self._teachers.pop(data)
        taught = self._taught[teacher]
        taught.popleft()
        if not taught:
            del self._taught[teacher]
        self.size -= len(data) + OVERHEAD


class Watchdog:
    """Calls `check` when a deadline may have come; it returns the next one, or None if there is none."""

    __slots__ = ("_at", "_check", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, check: Callable[[], float | None]) -> None:
        self._loop = loop
        self._check = check
        self._at = inf
        self._handle: asyncio.TimerHandle | None = None

    def by(self, deadline: float) -> None:
        """Look no later than this, in the loop's time."""
        if deadline >= self._at:
            return
        self.stop()
        self._at = deadline
        self._handle = self._loop.call_at(deadline, self._fire)

    def stop(self) -> None:
        """Look no more."""
        self._at = inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self.stop()
        deadline = self._check()
        if deadline is not None:
            self.by(deadline)


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
