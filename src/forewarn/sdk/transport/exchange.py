"""HTTP/1.1 requests and answers without I/O; h11 implements the protocol.

NotBefore is in the time of the server. The client derives that time from the `Date` header and the monotonic
clock: the clock of the machine may be wrong, and jumps when it is corrected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import h11

from forewarn.sdk.documents import parse_moment

# The status line and the headers together.
LONGEST_HEAD = 64 * 1024
# More than the document of a thousand events.
LONGEST_BODY = 4 * 1024 * 1024
HANGS_UP = "it closed the connection"
ENDLESS = "the answer is too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """The date of an answer, and its time of arrival on the monotonic clock."""

    date: datetime
    received: float

    def now(self, monotonic: float) -> datetime:
        """Return the current time of the server."""
        try:
            return self.date + timedelta(seconds=max(0.0, monotonic - self.received))
        except OverflowError:  # the clock of the server is close to the year 10000
            return datetime.max.replace(tzinfo=UTC)


def read_date(header: str | None, *, received: float) -> ServerTime | None:
    """Read the `Date` of an answer, if it has one."""
    date = None if header is None else parse_moment(header)
    return None if date is None else ServerTime(date=date, received=received)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestRequest:
    """A request to send after a pause (`after`), with a timeout (`seconds`)."""

    path: str
    seconds: float
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    after: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer; the header names are lower-case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    sent: float = 0.0  # on the monotonic clock
    received: float = 0.0  # on the monotonic clock

    @property
    def server_time(self) -> ServerTime | None:
        """The time of the server, if the answer has a date."""
        return read_date(self.headers.get("date"), received=self.received)

    @property
    def waited(self) -> bool:
        """Whether the server applied the preference `wait`."""
        preferences = self.headers.get("preference-applied", "").lower().split(",")
        return any(each.strip().partition("=")[0].rstrip() == "wait" for each in preferences)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """The reason why there is no answer."""

    why: str
    stale: bool = False  # the connection ended before the first byte of the answer
    sent: float = 0.0
    received: float = 0.0  # when it was abandoned


Reply: TypeAlias = HttpAnswer | NoAnswer


class Exchange:
    """The requests and answers on one connection."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._heard = False  # any byte of the answer

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent."""
        return self._http.our_state is h11.IDLE

    def send(self, request: h11.Request, body: bytes | None) -> bytes:
        """Return the bytes of a request."""
        self._head, self._body, self._heard = None, bytearray(), False
        parts = [request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
        return b"".join(self._http.send(part) or b"" for part in parts)

    def receive(self, data: bytes) -> Reply | None:
        """Receive bytes (none: the connection ended), and return the reply once it is complete."""
        self._heard = self._heard or bool(data)
        try:
            self._http.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            return self.failed(f"the answer is not HTTP: {error}" if data else HANGS_UP)

    def lost(self, error: Exception | None = None) -> NoAnswer:
        """Return the reply of a connection that has ended."""
        return self.failed(HANGS_UP if error is None else f"{HANGS_UP} ({error})")

    def failed(self, why: str) -> NoAnswer:
        """Return a reply without an answer."""
        return NoAnswer(why=why, stale=not self._heard)

    def _read(self) -> Reply | None:
        while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            match event:
                case h11.Response():
                    self._head = event
                case h11.Data():
                    self._body += event.data
                    if len(self._body) > LONGEST_BODY:
                        return self.failed(ENDLESS)
                case h11.EndOfMessage() if self._head is not None:
                    return self._finish(self._head)
                case h11.ConnectionClosed():
                    return self.failed(HANGS_UP)
                case _:
                    pass  # 100 Continue and other interim answers
        return None

    def _finish(self, head: h11.Response) -> HttpAnswer:
        headers: dict[str, str] = {}
        for name, value in ((each.decode("latin-1") for each in pair) for pair in head.headers):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        unasked, _ = self._http.trailing_data
        if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE and not unasked:
            self._http.start_next_cycle()
        return HttpAnswer(status=head.status_code, headers=headers, body=bytes(self._body))
