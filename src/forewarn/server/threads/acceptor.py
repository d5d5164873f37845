"""Accepts the operators' connections: so many as a whole and from each address, and never in silence.

The system's own socket is accepted from here, not by uvicorn: a caller is counted before it is spoken TLS
with, and descriptors that have run out are seen.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.server.threads.operator_connection import HEAD_BYTES, NOT_TLS, OperatorConnection, refusal
from forewarn.wire.texts import canonical

log = logging.getLogger(__name__)

# How many are accepted before others on the loop get their turn.
AT_ONCE = 64
# Until it is tried again to accept, when the system had no descriptor or memory for it.
PAUSE_SECONDS = 0.5
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How many connections there may be at once."""

    whole: int
    per_address: int


class _Place:
    """The place that a connection takes, from before its handshake until it has ended."""

    __slots__ = ("_socket", "_waits", "address", "connection", "starting")

    def __init__(self, accepted: socket.socket, address: str) -> None:
        self._socket = accepted
        self._waits = False
        self.address = address
        self.connection: OperatorConnection | None = None
        self.starting: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self.connection is None or self.connection.is_idle

    def abort(self) -> None:
        if self.starting is not None:
            self.starting.cancel()
            self._stop_waiting()
            self._socket.close()  # the task may not even have begun
        elif self.connection is not None:
            self.connection.abort()

    async def check_tls(self) -> None:
        """Wait for the first byte; whoever speaks plain HTTP is told, where OpenSSL would only hang up."""
        arrived = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._socket, arrived.set)
        self._waits = True
        try:
            await arrived.wait()
        finally:
            self._stop_waiting()
        if self._socket.recv(1, socket.MSG_PEEK).isalpha():
            self._socket.recv(HEAD_BYTES)  # what is not read when it is closed would take the answer back
            self._socket.send(refusal(*NOT_TLS))
            raise ConnectionAbortedError

    def _stop_waiting(self) -> None:
        if self._waits:
            self._waits = False
            asyncio.get_running_loop().remove_reader(self._socket)


class Acceptor:
    """Accepts connections and counts them. Where one too many comes, the oldest idle one gives way."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        connect: Callable[[Callable[[], None]], OperatorConnection],
        *,
        caps: Caps,
        refusals: Refusals,
        tls: Callable[[], ssl.SSLContext | None],
        handshake: float,
    ) -> None:
        """`connect` makes the protocol of a connection; it calls what it is given when it has ended.

        `tls` is asked for each connection: certificates are replaced while it listens.
        """
        self._listening = listening
        self._connect = connect
        self._caps = caps
        self._refusals = refusals
        self._tls = tls
        self._handshake = handshake  # how long it may take
        self._loop = asyncio.get_running_loop()
        # Owner of all that follows: the operator loop.
        self._places: dict[_Place, None] = {}  # the oldest first
        self._by_address: Counter[str] = Counter()
        self._retries: dict[socket.socket, asyncio.TimerHandle] = {}
        for each in listening:
            each.setblocking(False)  # noqa: FBT003 - the library has no name for it
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        """Accept no more."""
        for retry in self._retries.values():
            retry.cancel()
        for each in self._listening:
            self._loop.remove_reader(each)
        for place in tuple(self._places):
            if place.starting is not None:
                place.abort()

    async def wait_closed(self) -> None:
        """Return at once, as uvicorn's shutdown asks for: there is nothing to wait for."""

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._pause(listening, error)
                    return
                continue  # the caller has gone already
            self._take(accepted, canonical(peer[0]))

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Let callers wait: a socket that stays ready would keep the loop busy."""
        self._refusals.note(Limit.DESCRIPTORS, f"none can be accepted: {error.strerror}")
        self._loop.remove_reader(listening)
        self._retries[listening] = self._loop.call_later(PAUSE_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        self._loop.add_reader(listening, self._accept, listening)

    def _take(self, accepted: socket.socket, address: str) -> None:
        if not self._has_room(address):
            accepted.close()
            return
        place = _Place(accepted, address)
        self._places[place] = None
        self._by_address[address] += 1
        place.starting = self._loop.create_task(self._start(accepted, place))

    def _has_room(self, address: str) -> bool:
        """Make room if there is none, at the cost of the oldest that asks for nothing now."""
        caps = self._caps
        if self._by_address[address] >= caps.per_address:
            self._refusals.note(Limit.ADDRESS, f"{address} has {caps.per_address} already")
            return self._drop_idle(lambda place: place.address == address)
        if len(self._places) >= caps.whole:
            self._refusals.note(Limit.WHOLE, f"there are {caps.whole}, as many as may be")
            return self._drop_idle(lambda place: True)
        return True

    def _drop_idle(self, among: Callable[[_Place], bool]) -> bool:
        oldest = next((place for place in self._places if among(place) and place.is_idle), None)
        if oldest is None:
            return False
        oldest.abort()
        self._release(oldest)
        return True

    def _release(self, place: _Place) -> None:
        if place in self._places:
            del self._places[place]
            self._by_address[place.address] -= 1
            if not self._by_address[place.address]:
                del self._by_address[place.address]

    async def _start(self, accepted: socket.socket, place: _Place) -> None:
        """Shake hands, if that is wanted, and let uvicorn serve the connection."""
        connection = place.connection = self._connect(lambda: self._release(place))
        tls = self._tls()
        try:
            if tls is not None:
                async with asyncio.timeout(self._handshake):
                    await place.check_tls()
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else self._handshake,
            )
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, OSError | asyncio.CancelledError):  # else the caller's fault
                log.exception("a connection could not be begun")
            # The loop may have passed on a request already, and does not report that the connection is lost.
            connection.abort()
            connection.connection_lost(None)
            accepted.close()
        finally:
            place.starting = None
