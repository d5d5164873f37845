"""Connections to an endpoint: reused while they are fresh, replaced if they are stale.

This module does no I/O. It yields steps as data; a driver performs each step and sends back its result:
`blocking_driver` with sockets, `asyncio_driver` in an event loop.
"""

import socket
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import urlencode, urlsplit

import h11

from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.transport import endpoint_urls
from forewarn.sdk.transport.exchange import Exchange, GuestRequest, HttpAnswer, NoAnswer, Reply

if TYPE_CHECKING:
    from ssl import SSLContext

CONNECT_SECONDS = 5.0
# Firewalls drop idle connections without notice, so a connection that was idle for longer is not reused.
KEPT_SECONDS = 5.0

# Accept-Encoding keeps proxies from compressing.
HEADERS = {"Metadata": "true", "Accept-Encoding": "identity", "User-Agent": "forewarn"}

TOO_LATE = NoAnswer(why="the answer takes too long")

Result = TypeVar("Result")


class TransportConnection(Protocol):
    """A connection of a driver."""

    @property
    def exchange(self) -> Exchange:
        """The state of HTTP on the connection."""
        ...

    @property
    def is_reusable(self) -> bool:
        """Whether it is open and has received no unrequested data."""
        ...

    def hang_up(self) -> None:
        """Abort a transfer, from any thread; the thread that waits for it closes the connection."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection; the driver sends back the connection, or a `NoAnswer`."""

    host: str
    port: int
    tls: "SSLContext | None"
    seconds: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """Send bytes over a connection; the driver sends back the `Reply`."""

    connection: Any  # of the driver
    data: bytes
    seconds: float


Step: TypeAlias = Pause | Connect | Transfer
Steps: TypeAlias = Generator[Step, Any, Result]


class EndpointConnections:
    """All connections to one endpoint: busy ones, one for each open request, and idle ones."""

    def __init__(self, url: str, *, monotonic: Callable[[], float]) -> None:
        """Take the result of `base_url`."""
        parts = urlsplit(url)
        self._tls = endpoint_urls.tls_context(url)
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._path = parts.path
        self._headers = {"Host": parts.netloc, **HEADERS}
        self._monotonic = monotonic
        self._changing = threading.Lock()  # guards the fields below
        self._idle: list[tuple[TransportConnection, float]] = []  # and since when
        self._busy: set[TransportConnection] = set()
        self._closed = False

    def ask(self, request: GuestRequest) -> Steps[Reply]:
        """Send a request, and return the complete answer."""
        self._check_open()
        if kept := self._kept():
            # The server may have closed the connection without reading the request. If it did read it,
            # sending it twice is safe: reads change nothing, and an approval is idempotent.
            reply = yield from self._transfer(kept, request)
            if not (isinstance(reply, NoAnswer) and reply.stale):
                return reply
        made = yield Connect(self._host, self._port, self._tls, CONNECT_SECONDS)
        return made if isinstance(made, NoAnswer) else (yield from self._transfer(made, request))

    def close(self) -> None:
        """Close all connections permanently, from any thread: open requests raise `Closed`."""
        with self._changing:
            self._closed = True
            busy, idle = tuple(self._busy), tuple(self._idle)
            self._idle.clear()
        for each in busy:
            each.hang_up()
        for connection, _ in idle:
            connection.close()

    def _transfer(self, connection: TransportConnection, request: GuestRequest) -> Steps[Reply]:
        """Send a request over a connection, which afterwards is idle or closed."""
        reply: Reply | None = None
        with self._changing:
            self._busy.add(connection)
        try:
            self._check_open()
            data = connection.exchange.send(self._head(request), request.body)
            reply = yield Transfer(connection, data, request.seconds)
        finally:
            self._release(connection, answered=isinstance(reply, HttpAnswer))
        if isinstance(reply, NoAnswer):
            self._check_open()
        return reply

    def _release(self, connection: TransportConnection, *, answered: bool) -> None:
        with self._changing:
            self._busy.remove(connection)
            if answered and connection.exchange.is_idle and not self._closed:
                self._idle.append((connection, self._monotonic()))
                return
        connection.close()

    def _kept(self) -> TransportConnection | None:
        """Take the last used connection that is still open and fresh."""
        while True:
            with self._changing:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if connection.is_reusable and self._monotonic() < since + KEPT_SECONDS:
                return connection
            connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the client was closed")

    def _head(self, request: GuestRequest) -> h11.Request:
        query = f"?{urlencode(request.query)}" if request.query else ""
        headers = {**self._headers, **request.headers}
        if request.body is not None:
            headers["Content-Length"] = str(len(request.body))
        return h11.Request(
            method=request.method, target=self._path + request.path + query, headers=[*headers.items()]
        )


def unreachable(error: OSError) -> NoAnswer:
    """Describe why a connection failed."""
    why = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return NoAnswer(why=f"the host name cannot be resolved ({why})")
    return NoAnswer(why=f"the connection failed ({why})" if why else "the connection failed")
