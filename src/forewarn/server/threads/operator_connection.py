"""One connection of the operator API: uvicorn's, with limits on what a stranger may hold of it."""

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
# The parser knows versions before and after these too, which are framed otherwise.
READABLE = ("1.0", "1.1")
# A chunked body may come byte by byte, each with five more around it; what is beyond that is padding.
CHUNK_OVERHEAD = 6

NOT_HTTP = (400, "BadRequest", "the request is not HTTP/1.1")
NOT_TLS = (400, "BadRequest", "this port speaks TLS: the address begins with https://")
TOO_LARGE = (431, "TooLarge", "the request line and headers are too large")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a caller may take, in real seconds."""

    handshake: float = 10.0
    head: float = 10.0  # request line and headers, from the first moment of a connection or byte of a request
    body: float = 60.0  # a fleet of 64 MiB needs a megabyte a second
    reading: float = 60.0  # for a client to read on, when it is sent more than the system takes


@dataclass(slots=True)
class PortCounts:
    """Counts connections of the operator port. The operator loop writes it, any thread may read it."""

    refusals: Refusals
    hang_ups: int = 0  # clients that hung up in the middle of a request, or before its answer began


def refusal(status: int, code: str, message: str) -> bytes:
    """Write the last answer of a connection, in the form of every error of the API."""
    answer = JSONResponse({"error": {"code": code, "message": message}}, status)
    head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    head += [name + b": " + value for name, value in (*answer.raw_headers, (b"connection", b"close"))]
    return b"\r\n".join((*head, b"", answer.body))


class OperatorConnection(HttpToolsProtocol):
    """Ends when a request comes too slowly or is too large, or when an answer is not read.

    Owner of all its values: the operator loop.
    """

    def __init__(
        self, *, ended: Callable[[], None], counts: PortCounts, patience: Patience, **uvicorn: Any
    ) -> None:
        super().__init__(**uvicorn)
        self._ended = ended
        self._counts = counts
        self._patience = patience
        self._answering: deque[RequestResponseCycle] = deque()  # pipelined requests, the oldest first
        self._is_closed_here = self._is_lost = False
        self._arriving: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_request = False  # one has begun and not ended
        self._head_bytes = 0
        self._head_done = False
        self._padding = 0  # bytes of the request that are not of its body
        self._refusal = NOT_HTTP

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def abort(self) -> None:
        """Close now."""
        self._is_closed_here = True
        if self.transport is not None:
            self.transport.abort()

    # What the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, not for long."""
        super().connection_made(transport)
        self._expect_within(self._patience.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything, and let each request that is being answered know."""
        if self._is_lost:
            return
        self._is_lost = True
        self._arrived()
        # Uvicorn ends the newest pipelined request alone; the one before it would write to a closed socket.
        for cycle in self._answering:
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
        # A stream has begun to be answered, and never ends otherwise.
        is_awaited = self._in_request or any(not cycle.response_started for cycle in self._answering)
        if is_awaited and not self._is_closed_here:
            self._counts.hang_ups += 1
        self.resume_writing()
        if self.transport is not None:
            super().connection_lost(exc)
        self._ended()

    def data_received(self, data: bytes) -> None:
        """Read on, unless a request grows without end while a part of it is incomplete."""
        if self._in_request:
            self._padding += len(data)
        super().data_received(data)
        if self._in_request and self._padding > 2 * HEAD_BYTES and not self.transport.is_closing():
            self._refusal = TOO_LARGE
            self.send_400_response("")

    def pause_writing(self) -> None:
        """Wait for the client to read on, not for ever."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self._patience.reading, self.abort)

    def resume_writing(self) -> None:
        """Go on."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self.flow is not None:
            super().resume_writing()

    # What the parser calls; an exception here refuses the request

    def on_message_begin(self) -> None:
        """Start a request, which has to arrive in time."""
        super().on_message_begin()
        self._in_request = True
        self._padding = 0
        self._head_bytes = 0
        self._head_done = False
        if self._arriving is None:
            self._expect_within(self._patience.head)

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is not kept."""
        self._count(len(name) + len(value) + len(": \r\n"))
        if self._head_done:
            return
        if len(self.headers) >= HEADERS:
            self._refuse_head()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer; the body may take longer."""
        self._arrived()
        self._head_done = True
        if self.parser.get_http_version() not in READABLE:
            raise ValueError(self._refusal)
        self._expect_within(self._patience.body)
        super().on_headers_complete()
        while self._answering and self._answering[0].response_complete:
            self._answering.popleft()
        self._answering.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; a chunk may be one byte, with five around it."""
        self._padding -= CHUNK_OVERHEAD * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait no longer: the request is whole."""
        self._in_request = False
        self._arrived()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read, and close."""
        self._is_closed_here = True
        self.transport.write(refusal(*self._refusal))
        self.transport.close()

    def _count(self, size: int) -> None:
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
