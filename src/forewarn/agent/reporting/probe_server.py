"""The HTTP server for probes: `/healthz`, `/readyz`, `/metrics`, `/status`."""

import asyncio
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from forewarn.wire.authority import is_expected

REQUEST_SECONDS = 5.0
LONGEST_REQUEST = 8 * 1024
# Probes come alone. Many connections at once are a mistake or an attack: the oldest gives way to the newest.
# More than the loop accepts at a time (100), so that a request is read before newer connections end it.
MOST_CONNECTIONS = 128
# What a web page must not read by pointing its own name at this address. The others tell no more than that
# the agent works, to checks that send whatever Host they like.
PRIVATE = frozenset({"/status"})


class ProbePage(NamedTuple):
    """What is answered to a probe."""

    status: HTTPStatus
    content: bytes
    kind: str = "application/json"


def as_json(value: object, status: HTTPStatus = HTTPStatus.OK) -> ProbePage:
    """Return a value as a page."""
    return ProbePage(status, json.dumps(value, ensure_ascii=False).encode() + b"\n")


class ProbeServer:
    """A small HTTP server: GET, one request for each connection."""

    def __init__(
        self, pages: Mapping[str, Callable[[], ProbePage]], *, request_seconds: float = REQUEST_SECONDS
    ) -> None:
        """Take how long a connection may last."""
        self._pages = pages
        self._request_seconds = request_seconds
        self._names: frozenset[str] = frozenset()
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns where. OSError says why not."""
        self._names = frozenset({host.lower()})
        self._server = await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)
        found: tuple[Any, ...] = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(self._request_seconds):
                writer.write(_written(self._page(await reader.readuntil(b"\r\n\r\n"))))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # such requests are not answered
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()  # a client that does not read would keep the connection open

    def _page(self, request: bytes) -> ProbePage:
        method, _, rest = request.decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if path not in self._pages:
            known = ", ".join(self._pages)
            return as_json({"error": f"there is no {path}; there is {known}"}, HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            return as_json({"error": "expected GET"}, HTTPStatus.METHOD_NOT_ALLOWED)
        if path in PRIVATE and not all(is_expected(host, self._names) for host in _hosts(request)):
            return as_json({"error": "the Host header names no address of this agent"}, HTTPStatus.FORBIDDEN)
        page = self._pages[path]()
        return page if method == "GET" else page._replace(content=b"")


def _hosts(request: bytes) -> list[str]:
    fields = (line.partition(":") for line in request.decode("latin-1").split("\r\n")[1:])
    return [value for name, _, value in fields if name.strip().lower() == "host"]


def _written(page: ProbePage) -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.kind}\r\n"
        f"Content-Length: {len(page.content)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + page.content
