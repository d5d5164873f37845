"""One connection of the operator API: uvicorn's protocol with limits on time and size."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from forewarn.guest.http.refusals import Refusals

HEAD_BYTES = 64 * 1024
HEADERS = 100
# The parser also accepts older and newer versions, which frame messages differently.
READABLE = ("1.0", "1.1")
# A chunk of one byte takes six bytes. More bytes than that for each byte of the body count as padding.
CHUNK_OVERHEAD = 6

NOT_HTTP = (400, "BadRequest", "the request is not HTTP/1.1")
NOT_TLS = (400, "BadRequest", "this port requires TLS: use an https:// address")
TOO_LARGE = (431, "TooLarge", "the request line and headers are too large")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The timeouts of a connection, in real seconds."""

    handshake: float = 10.0
    head: float = 10.0  # request line and headers, from the start of the connection or of the request
    body: float = 60.0  # a fleet of 64 MiB needs a megabyte a second
    reading: float = 60.0  # for a client to continue to read an answer


@dataclass(slots=True)
class PortCounts:
    """Counters of the operator port. The operator loop writes them; any thread may read them."""

    refusals: Refusals
    hang_ups: int = 0  # clients that disconnected during a request, or before the answer began


def refusal(status: int, code: str, message: str) -> bytes:
    """Write the last answer of a connection, in the format of all API errors."""
    answer = JSONResponse({"error": {"code": code, "message": message}}, status)
    head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    head += [name + b": " + value for name, value in (*answer.raw_headers, (b"connection", b"close"))]
    return b"\r\n".join((*head, b"", answer.body))


class OperatorConnection(HttpToolsProtocol):
    """Closes when a request is too slow or too large, or when the client stops reading.

    Owner of all its values: the operator loop.
    """

    def __init__(
        self, *, ended: Callable[[], None], counts: PortCounts, timeouts: Timeouts, **uvicorn: Any
    ) -> None:
        super().__init__(**uvicorn)
        self._ended = ended
        self._counts = counts
        self._timeouts = timeouts
        self._answering: deque[RequestResponseCycle] = deque()  # pipelined requests, oldest first
        self._is_closed_here = self._is_lost = False
        self._arriving: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_request = False  # a part of a request has arrived
        self._head_bytes = 0
        self._head_done = False
        self._padding = 0  # bytes of the request that do not belong to its body
        self._refusal = NOT_HTTP

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no open request."""
        return self.cycle is None or self.cycle.response_complete

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closed_here = True
        if self.transport is not None:
            self.transport.abort()

    # The transport calls these methods.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self._expect_within(self._timeouts.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every open request that the client has disconnected."""
        if self._is_lost:
            return
        self._is_lost = True
        self._arrived()
        # Uvicorn ends only the newest pipelined request; an older one would write to a closed socket.
        for cycle in self._answering:
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
        # A stream whose answer has begun does not count: disconnecting is how it ends.
        is_awaited = self._in_request or any(not cycle.response_started for cycle in self._answering)
        if is_awaited and not self._is_closed_here:
            self._counts.hang_ups += 1
        self.resume_writing()
        if self.transport is not None:
            super().connection_lost(exc)
        self._ended()

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse a request whose incomplete part grows without limit."""
        if self._in_request:
            self._padding += len(data)
        super().data_received(data)
        if self._in_request and self._padding > 2 * HEAD_BYTES and not self.transport.is_closing():
            self._refusal = TOO_LARGE
            self.send_400_response("")

    def pause_writing(self) -> None:
        """Start the timeout for a client that has stopped reading."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self._timeouts.reading, self.abort)

    def resume_writing(self) -> None:
        """Cancel the timeout of `pause_writing`."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self.flow is not None:
            super().resume_writing()

    # The parser calls these methods; an exception refuses the request.

    def on_message_begin(self) -> None:
        """Start the timeout for the head of a request."""
        super().on_message_begin()
        self._in_request = True
        self._padding = 0
        self._head_bytes = 0
        self._head_done = False
        if self._arriving is None:
            self._expect_within(self._timeouts.head)

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; ignore a trailer."""
        self._count_head(len(name) + len(value) + len(": \r\n"))
        if self._head_done:
            return
        if len(self.headers) >= HEADERS:
            self._refuse_head()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the timeout for the body and pass the request on."""
        self._arrived()
        self._head_done = True
        if self.parser.get_http_version() not in READABLE:
            raise ValueError(self._refusal)
        self._expect_within(self._timeouts.body)
        super().on_headers_complete()
        while self._answering and self._answering[0].response_complete:
            self._answering.popleft()
        self._answering.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._padding -= CHUNK_OVERHEAD * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Cancel the timeout: the request is complete."""
        self._in_request = False
        self._arrived()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed, and close."""
        self._is_closed_here = True
        self.transport.write(refusal(*self._refusal))
        self.transport.close()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            self._refuse_head()

    def _refuse_head(self) -> None:
        self._refusal = TOO_LARGE
        raise ValueError(self._refusal)

    def _expect_within(self, seconds: float) -> None:
        self._arriving = self.loop.call_later(seconds, self.abort)

    def _arrived(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None
