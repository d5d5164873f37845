"""How requests reach an endpoint: over a connection that was kept, or a new one; a stale one is replaced.

What this asks of the outside world are steps, as data. A driver takes them one by one, performs each, and
sends back what became of it: `blocking_driver` with sockets, `asyncio_driver` in an event loop.
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
# Middleboxes forget connections without a word: one that was idle for longer is not used again.
KEPT_SECONDS = 5.0

# Not through a compressing or caching thing, and known as what it is.
HEADERS = {"Metadata": "true", "Accept-Encoding": "identity", "User-Agent": "forewarn"}

TOO_LATE = NoAnswer(why="it takes too long to answer")

Result = TypeVar("Result")


class TransportConnection(Protocol):
    """A connection, as its driver holds it."""

    @property
    def exchange(self) -> Exchange:
        """What was said over it."""
        ...

    @property
    def is_silent(self) -> bool:
        """Whether it is open, and nothing came that was not asked for."""
        ...

    def hang_up(self) -> None:
        """End what is under way, from any thread; the one that waits for it closes the connection."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection: its `Connection`, or a `NoAnswer`, is to be sent back."""

    host: str
    port: int
    tls: "SSLContext | None"
    seconds: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """Send bytes over a connection, and let its exchange receive until there is a `Reply`."""

    connection: Any  # a `Connection` of the driver's own
    data: bytes
    seconds: float


Step: TypeAlias = Pause | Connect | Transfer
Steps: TypeAlias = Generator[Step, Any, Result]


class EndpointConnections:
    """All connections to one endpoint: one for each request that is under way, and those that are idle."""

    def __init__(self, url: str, *, monotonic: Callable[[], float]) -> None:
        """Take a URL as `base_url` makes it."""
        parts = urlsplit(url)
        self._tls = endpoint_urls.trusted(url)
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._path = parts.path
        self._headers = {"Host": parts.netloc, **HEADERS}
        self._monotonic = monotonic
        self._changing = threading.Lock()  # guards the rest
        self._idle: list[tuple[TransportConnection, float]] = []  # and since when
        self._busy: set[TransportConnection] = set()
        self._closed = False

    def ask(self, request: GuestRequest) -> Steps[Reply]:
        """Send a request, and return all of its answer."""
        self._check_open()
        if kept := self._kept():
            # The server may have ended it just now, and never have read this. If it has, being asked twice
            # does no harm: reading changes nothing, and an approval counts once.
            reply = yield from self._transfer(kept, request)
            if not (isinstance(reply, NoAnswer) and reply.stale):
                return reply
        made = yield Connect(self._host, self._port, self._tls, CONNECT_SECONDS)
        return made if isinstance(made, NoAnswer) else (yield from self._transfer(made, request))

    def close(self) -> None:
        """Hang up for good, from any thread: what is being asked ends with `Closed`."""
        with self._changing:
            self._closed = True
            busy, idle = tuple(self._busy), tuple(self._idle)
            self._idle.clear()
        for each in busy:
            each.hang_up()
        for connection, _ in idle:
            connection.close()

    def _transfer(self, connection: TransportConnection, request: GuestRequest) -> Steps[Reply]:
        """Ask over a connection, which is idle again or closed afterwards, whatever happens."""
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
        """Take the connection that was used last, unless it has ended or is too old."""
        while True:
            with self._changing:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if connection.is_silent and self._monotonic() < since + KEPT_SECONDS:
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
    """Return in words why no connection could be made."""
    why = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return NoAnswer(why=f"no host of that name can be found ({why})")
    return NoAnswer(why=f"nothing listens there ({why})" if why else "nothing listens there")
