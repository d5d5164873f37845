"""HTTP messages as a proxy needs them: read whole, changed a little, sent on."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import urlsplit

Headers: TypeAlias = tuple[tuple[str, str], ...]

EVENTS = "/metadata/scheduledevents"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# More than the service takes itself: it is the service that should refuse.
MOST_BYTES = 1024 * 1024
REASONS = {
    200: "OK",
    304: "Not Modified",
    400: "Bad Request",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_BODILESS = frozenset({204, 304})


class Garbled(Exception):
    """What came is no HTTP message that can be passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or an answer."""

    line: str
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the first header of a name."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    def without(self, *names: str) -> "Message":
        """Leave headers out."""
        return replace(self, headers=tuple(pair for pair in self.headers if pair[0].lower() not in names))

    def bytes(self) -> bytes:
        """Write it as it is sent."""
        lines = [self.line, *(f"{name}: {value}" for name, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body

    @property
    def closes(self) -> bool:
        """Whether the connection ends with it."""
        return "close" in (self.header("connection") or "").lower()

    @property
    def method(self) -> str:
        """A request's method."""
        return self.line.partition(" ")[0]

    @property
    def about_events(self) -> bool:
        """Whether a request is for the scheduled events."""
        target = self.line.split(" ")[1] if self.line.count(" ") > 1 else ""
        return urlsplit(target).path.lower().removesuffix("/") == EVENTS

    @property
    def status(self) -> int:
        """An answer's status."""
        return int(self.line.split(" ")[1])


def answer(status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = ()) -> Message:
    """Make an answer."""
    length = () if status in _BODILESS else (("Content-Length", str(len(body))),)
    return Message(line=f"HTTP/1.1 {status} {REASONS[status]}", headers=(*headers, *length), body=body)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Message | None:
    """Read a request with its body; None if there is no other."""
    head = await _head(reader)
    if head is None:
        return None
    if (head.header("expect") or "").lower() == "100-continue":
        writer.write(CONTINUE)
    if "chunked" in (head.header("transfer-encoding") or "").lower():
        body = await _chunks(reader)
    else:
        body = await _exactly(reader, head.header("content-length"))
    plain = head.without("expect", "transfer-encoding", "content-length")
    if not body and head.header("content-length") is None:
        return plain
    return replace(plain, headers=(*plain.headers, ("Content-Length", str(len(body)))), body=body)


async def read_answer(reader: asyncio.StreamReader) -> Message:
    """Read an answer with its body."""
    head = await _head(reader)
    if head is None:
        raise Garbled("the service closed the connection")
    if head.status in _BODILESS:
        return head
    return replace(head, body=await _exactly(reader, head.header("content-length")))


async def _head(reader: asyncio.StreamReader) -> Message | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError:
        raise Garbled("the head is too long") from None
    line, *rest = raw[:-4].decode("latin-1").split("\r\n")
    pairs = (each.partition(":") for each in rest)
    return Message(line=line, headers=tuple((name, value.strip()) for name, _, value in pairs))


async def _exactly(reader: asyncio.StreamReader, length: str | None) -> bytes:
    if length is None:
        return b""
    return await _read(reader, length, base=10)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = (await _line(reader)).partition(b";")[0].decode("latin-1")
        chunk = await _read(reader, size, base=16)
        if chunk:
            body += chunk
            await _line(reader)
            continue
        while await _line(reader) not in (b"\r\n", b""):
            pass
        return body


async def _read(reader: asyncio.StreamReader, size: str, *, base: int) -> bytes:
    try:
        wanted = int(size.strip(), base)
    except ValueError:
        raise Garbled(f"{size!r} is no length") from None
    if not 0 <= wanted <= MOST_BYTES:
        raise Garbled(f"{size} bytes are too many")
    try:
        return await reader.readexactly(wanted)
    except asyncio.IncompleteReadError:
        raise Garbled("it ends too soon") from None


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:
        raise Garbled("a line is too long") from None
