"""HTTP/1.1 for the client with an event loop: connections that are kept, on each one request at a time.

An agent asks once a second for as long as its machine lives, and what httpx does for a request costs three
times as much as this. So here is what a metadata endpoint needs, and no more; h11 knows the protocol.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import h11

from forewarn.sdk.calls import Ask
from forewarn.sdk.errors import Closed
from forewarn.sdk.transport import addresses
from forewarn.sdk.transport.addresses import NoAnswer

# Of status line and headers together.
LONGEST_HEAD = 64 * 1024

HANGS_UP = "it hangs up"


class HungUp(NoAnswer):
    """The connection ended before a byte of the answer had come."""


class Response(NamedTuple):
    """What came back; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """All connections to one endpoint: one for each request that is under way, and those that are idle."""

    def __init__(self, url: str) -> None:
        """Take a URL as `base_url` makes it."""
        parts = urlsplit(url)
        self._tls = addresses.trusted(url) if parts.scheme == "https" else None
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._path = parts.path
        self._headers = {"Host": parts.netloc, **addresses.HEADERS}
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False

    async def ask(self, ask: Ask) -> Response:
        """Send a request, and wait for all of its answer; NoAnswer says why there is none."""
        self._still_open()
        request = self._request(ask)
        if kept := self._kept():
            # The server may have ended it just now, and never have read this. If it has, being asked twice
            # does no harm: reading changes nothing, and an approval counts once.
            with suppress(HungUp):
                return await self._answer(kept, request, ask)
        return await self._answer(await self._made(), request, ask)

    def close(self) -> None:
        """Hang up for good: what is being asked ends with `Closed`."""
        self._closed = True
        for each in (*self._idle, *self._busy):
            each.close()
        self._idle.clear()

    async def _answer(self, connection: "_Connection", request: h11.Request, ask: Ask) -> Response:
        """Ask over a connection, which is idle again or closed afterwards, whatever happens."""
        response: Response | None = None
        self._busy.add(connection)
        try:
            self._still_open()
            async with asyncio.timeout(ask.seconds):
                response = await connection.exchange(request, ask.body)
        except TimeoutError:
            raise NoAnswer(addresses.TOO_LATE) from None
        except NoAnswer:
            self._still_open()
            raise
        finally:
            self._busy.remove(connection)
            if response is not None and connection.is_idle:
                self._idle.append(connection)
            else:
                connection.close()
        return response

    def _still_open(self) -> None:
        if self._closed:
            raise Closed(addresses.CLOSED)

    def _kept(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle:
                return connection
        return None

    async def _made(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(addresses.CONNECT_SECONDS):
                _, made = await loop.create_connection(_Connection, self._host, self._port, ssl=self._tls)
        except TimeoutError:
            raise NoAnswer(addresses.nobody()) from None
        except socket.gaierror as error:
            raise NoAnswer(addresses.unknown_name(error.strerror or str(error))) from None
        except OSError as error:
            raise NoAnswer(addresses.nobody(error.strerror or str(error))) from None
        return made

    def _request(self, ask: Ask) -> h11.Request:
        query = f"?{urlencode(ask.query)}" if ask.query else ""
        headers = {**self._headers, **ask.headers}
        if ask.body is not None:
            headers["Content-Length"] = str(len(ask.body))
        return h11.Request(
            method=ask.method, target=self._path + ask.path + query, headers=[*headers.items()]
        )


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._transport: asyncio.Transport | None = None
        self._coming: asyncio.Future[Response] | None = None  # while an answer is awaited
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._heard = False  # any byte of the answer

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent."""
        open_ = self._transport is not None and not self._transport.is_closing()
        return open_ and self._http.our_state is h11.IDLE

    async def exchange(self, request: h11.Request, body: bytes | None) -> Response:
        """Send a request, and wait for its answer."""
        if not self.is_idle:  # it has ended already, and nothing more would be heard of that
            raise HungUp(HANGS_UP)
        parts: list[Any] = [request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
        written = b"".join(self._http.send(part) or b"" for part in parts)
        self._head, self._body, self._heard = None, bytearray(), False
        self._coming = asyncio.get_running_loop().create_future()
        try:
            cast("asyncio.Transport", self._transport).write(written)
            return await self._coming
        finally:
            self._coming = None

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on; what comes unasked is no answer to whatever is asked next."""
        if self._coming is None or self._coming.done():
            self.close()
        else:
            self._heard = True
            self._http.receive_data(data)
            self._read()

    def eof_received(self) -> None:
        """Read to the end, which may be that of an answer."""
        if self._coming is not None and not self._coming.done():
            self._http.receive_data(b"")
            self._read(ended=True)

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self._fail(HANGS_UP if error is None else f"{HANGS_UP} ({error})")

    def _read(self, *, ended: bool = False) -> None:
        try:
            while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                match event:
                    case h11.Response():
                        self._head = event
                    case h11.Data():
                        self._body += event.data
                        if len(self._body) > addresses.LONGEST_BODY:
                            return self._fail(addresses.ENDLESS)
                    case h11.EndOfMessage():
                        return self._finish()
                    case h11.ConnectionClosed():
                        return self._fail(HANGS_UP)
                    case _:
                        pass  # 100 and its like
        except h11.RemoteProtocolError as error:
            self._fail(HANGS_UP if ended else f"it does not speak HTTP: {error}")
        return None

    def _finish(self) -> None:
        if self._head is None or self._coming is None:
            return
        headers: dict[str, str] = {}
        for name, value in ((each.decode("latin-1") for each in pair) for pair in self._head.headers):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self._coming.set_result(Response(self._head.status_code, headers, bytes(self._body)))
        unasked, _ = self._http.trailing_data
        if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE and not unasked:
            self._http.start_next_cycle()

    def _fail(self, why: str) -> None:
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(NoAnswer(why) if self._heard else HungUp(why))
