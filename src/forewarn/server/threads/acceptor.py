"""Accepts connections of operators, with a limit on all connections and on those of each address.

This module accepts sockets instead of uvicorn, so that it can count a caller before the TLS handshake and
report when the process has no file descriptor left.
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

# Connections accepted in one step, before the loop runs other callbacks.
AT_ONCE = 64
# How long to pause after the system had no descriptor or memory for a connection.
PAUSE_SECONDS = 0.5
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The limits on open connections."""

    whole: int
    per_address: int


class _AcceptedConnection:
    """An accepted connection, from before its handshake until its end."""

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
            self._socket.close()  # the task may not have begun
        elif self.connection is not None:
            self.connection.abort()

    async def check_tls(self) -> None:
        """Wait for the first byte; answer plain HTTP with an error, where OpenSSL would only disconnect."""
        arrived = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._socket, arrived.set)
        self._waits = True
        try:
            await arrived.wait()
        finally:
            self._stop_waiting()
        if self._socket.recv(1, socket.MSG_PEEK).isalpha():
            self._socket.recv(HEAD_BYTES)  # closing with unread data would reset the connection
            self._socket.send(refusal(*NOT_TLS))
            raise ConnectionAbortedError

    def _stop_waiting(self) -> None:
        if self._waits:
            self._waits = False
            asyncio.get_running_loop().remove_reader(self._socket)


class Acceptor:
    """Accepts and counts connections. At a limit it closes the oldest idle connection."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        connect: Callable[..., OperatorConnection],
        *,
        caps: Caps,
        refusals: Refusals,
        tls: Callable[[], ssl.SSLContext | None],
        handshake: float,
    ) -> None:
        """Take `connect`, which makes the protocol of a connection; `ended` is its callback for the end.

        `tls` is called for each connection, because a reload may replace the certificate. `handshake` is the
        timeout of the TLS handshake in seconds.
        """
        self._listening = listening
        self._connect = connect
        self._caps = caps
        self._refusals = refusals
        self._tls = tls
        self._handshake = handshake
        self._loop = asyncio.get_running_loop()
        # Owner of the following values: the operator loop.
        self._opened: dict[_AcceptedConnection, None] = {}  # oldest first
        self._by_address: Counter[str] = Counter()
        self._retries: dict[socket.socket, asyncio.TimerHandle] = {}
        for each in listening:
            each.setblocking(False)  # noqa: FBT003 - positional only
            self._loop.add_reader(each, self._accept, each)

    def close(self) -> None:
        """Accept no more connections and abort handshakes."""
        for retry in self._retries.values():
            retry.cancel()
        for each in self._listening:
            self._loop.remove_reader(each)
        for opened in tuple(self._opened):
            if opened.starting is not None:
                opened.abort()

    async def wait_closed(self) -> None:
        """Return at once; uvicorn's shutdown awaits this."""

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
                continue  # the caller has disconnected
            self._take(accepted, canonical(peer[0]))

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Stop accepting for a while: a socket that stays ready would keep the loop busy."""
        self._refusals.note(Limit.DESCRIPTORS, f"cannot accept connections: {error.strerror}")
        self._loop.remove_reader(listening)
        self._retries[listening] = self._loop.call_later(
            PAUSE_SECONDS, self._loop.add_reader, listening, self._accept, listening
        )

    def _take(self, accepted: socket.socket, address: str) -> None:
        if not self._has_room(address):
            accepted.close()
            return
        opened = _AcceptedConnection(accepted, address)
        self._opened[opened] = None
        self._by_address[address] += 1
        opened.starting = self._loop.create_task(self._start(accepted, opened))

    def _has_room(self, address: str) -> bool:
        """Return whether another connection may be opened; at a limit, close the oldest idle one."""
        caps = self._caps
        if self._by_address[address] >= caps.per_address:
            self._refusals.note(Limit.ADDRESS, f"{address} has {caps.per_address} already")
            return self._drop_idle(lambda opened: opened.address == address)
        if len(self._opened) >= caps.whole:
            self._refusals.note(Limit.WHOLE, f"all {caps.whole} are in use")
            return self._drop_idle(lambda _: True)
        return True

    def _drop_idle(self, among: Callable[[_AcceptedConnection], bool]) -> bool:
        oldest = next((each for each in self._opened if among(each) and each.is_idle), None)
        if oldest is None:
            return False
        oldest.abort()
        self._release(oldest)
        return True

    def _release(self, opened: _AcceptedConnection) -> None:
        if opened in self._opened:
            del self._opened[opened]
            self._by_address[opened.address] -= 1
            if not self._by_address[opened.address]:
                del self._by_address[opened.address]

    async def _start(self, accepted: socket.socket, opened: _AcceptedConnection) -> None:
        """Do the TLS handshake if TLS is on, and let uvicorn serve the connection."""
        connection = opened.connection = self._connect(ended=lambda: self._release(opened))
        tls = self._tls()
        try:
            if tls is not None:
                async with asyncio.timeout(self._handshake):
                    await opened.check_tls()
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else self._handshake,
            )
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, OSError | asyncio.CancelledError):  # those are caused by the caller
                log.exception("a connection could not be opened")
            # The loop may have passed on a request already, but it does not call `connection_lost`.
            connection.abort()
            connection.connection_lost(None)
            accepted.close()
        finally:
            opened.starting = None
