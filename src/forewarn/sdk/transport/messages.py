"""What goes over the wire and what comes back, without I/O: a request, and an answer or why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from forewarn.sdk.server_time import ServerTime, read_date


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestRequest:
    """A request, to be sent after a pause, whose answer may take so many seconds."""

    path: str
    seconds: float
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    after: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back; names of headers in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    sent: float = 0.0  # on the monotonic clock, as is
    received: float = 0.0

    @property
    def server_time(self) -> ServerTime | None:
        """The server's time, if it named it."""
        return read_date(self.headers.get("date"), received=self.received)

    @property
    def waited(self) -> bool:
        """Whether the server held the request, as it was asked to."""
        preferences = self.headers.get("preference-applied", "").lower().split(",")
        return any(each.strip().partition("=")[0].rstrip() == "wait" for each in preferences)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Why no answer came."""

    why: str
    stale: bool = False  # the connection ended before a byte of the answer, perhaps before the request
    sent: float = 0.0
    received: float = 0.0  # when it was abandoned


Reply: TypeAlias = HttpAnswer | NoAnswer
