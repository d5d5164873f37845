"""Answers: a status, the headers that every answer has, and all that follows them."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from typing import NamedTuple

from forewarn.clock import Clock
from forewarn.guest.requests import Refusal, RequestFault
from forewarn.wire import azure
from forewarn.wire.azure import http_date

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
END_OF_HEAD = b"\r\n\r\n"

# The service may be able to in a moment; a poller comes back in a second anyway.
RETRY = b"Retry-After: 1\r\n"


class GuestAnswer(NamedTuple):
    """What is sent: the headers of its own, the empty line and the body follow the common headers."""

    status: int
    rest: bytes


APPROVED = GuestAnswer(200, f"Content-Type: {JSON}\r\nContent-Length: 0\r\n\r\n".encode())


def content(body: bytes, *, kind: str = JSON) -> GuestAnswer:
    """Answer with a body."""
    return GuestAnswer(200, f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def text_or_json(value: object) -> GuestAnswer:
    """Answer with a text as it is, and with anything else as JSON."""
    if isinstance(value, str):
        return content(value.encode(errors="replace"), kind=TEXT)
    return content(azure.compact(value))


def not_modified(etag: bytes) -> GuestAnswer:
    """Answer that the caller has the document already."""
    return GuestAnswer(304, b'ETag: "' + etag + b'"' + END_OF_HEAD)


def with_header(answer: GuestAnswer, line: bytes) -> GuestAnswer:
    """Add a header to an answer."""
    return GuestAnswer(answer.status, line + answer.rest)


def relabelled(answer: GuestAnswer, kind: str) -> GuestAnswer:
    """Call a document something else than JSON."""
    rest = answer.rest.replace(f"Content-Type: {JSON}".encode(), f"Content-Type: {kind}".encode(), 1)
    return GuestAnswer(answer.status, rest)


def without_body(answer: GuestAnswer) -> GuestAnswer:
    """Leave the body out, as for HEAD."""
    head, _, _ = answer.rest.partition(END_OF_HEAD)
    return GuestAnswer(answer.status, head + END_OF_HEAD)


class ErrorAnswers:
    """Makes error answers, each with an id by which it can be found again."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self.count = 0  # of error answers so far

    def error(self, status: int, body: bytes, headers: bytes = b"") -> GuestAnswer:
        """Answer with an error."""
        self.count += 1
        request_id = f"x-ms-request-id: {self._new_id().lower()}\r\n".encode()
        return with_header(GuestAnswer(status, content(body).rest), headers + request_id)

    def refusal(self, refusal: Refusal) -> GuestAnswer:
        """Answer a request that is turned down for what it is."""
        return self.error(refusal.status, refusal.body, refusal.headers)

    def fault(self, fault: RequestFault) -> GuestAnswer:
        """Answer what could not be read."""
        return self.error(fault.status, azure.error(fault.text), RETRY if fault.retry else b"")

    def invalid(self, why: str) -> GuestAnswer:
        """Answer an approval that is wrong."""
        return self.error(400, azure.error(f"Bad request. {why}"))

    def conflict(self, why: str) -> GuestAnswer:
        """Answer a wish that cannot be met as things are."""
        return self.error(409, azure.error(f"Conflict. {why}"))

    def not_found(self) -> GuestAnswer:
        """Answer a caller that is not known, with not a word more than for an unknown path."""
        return self.error(404, azure.NOT_FOUND)

    def too_many(self) -> GuestAnswer:
        """Answer a caller that asks too often."""
        return self.error(429, azure.error("Too many requests"), RETRY)

    def unavailable(self, why: str) -> GuestAnswer:
        """Answer what cannot be done now."""
        return self.error(503, azure.error(why), RETRY)

    def broken(self) -> GuestAnswer:
        """Answer when it is our own fault."""
        return self.error(500, azure.error("Internal error"))


REASONS = {
    200: "OK",
    304: "Not Modified",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class TimeCache:
    """Real and service time as last read, and how an answer begins in that second."""

    __slots__ = (
        "_clock",
        "_common",
        "_second",
        "not_modified",
        "ok",
        "real",
        "seconds",
        "time",
        "valid_at",
    )

    def __init__(self, loop: AbstractEventLoop, clock: Clock) -> None:
        self.time = loop.time
        self._clock = clock
        self._second = -1
        self.renew(loop.time())

    def refresh(self) -> float:
        """Read the time anew if it may have changed, and return the real one.

        The loop's time stands still while it works off what has arrived, so that a burst of requests
        asks the clock once.
        """
        real = self.time()
        if real != self.valid_at:
            self.renew(real)
        return real

    def until(self, seconds: float) -> float | None:
        """Return the real seconds until a moment of service time; None: until the clock is turned."""
        speed = self._clock.speed
        return None if speed == 0 else max(0.0, seconds - self._clock.seconds()) / speed

    def renew(self, real: float) -> None:
        """Read the time anew."""
        self.real = real
        # The loop tells milliseconds apart, in which a clock may have been turned, or have run far: then no
        # moment is the same as this one.
        self.valid_at = real if 0 < self._clock.speed <= 1 else nan
        self.seconds = self._clock.seconds()
        if int(self.seconds) != self._second:
            self._second = int(self.seconds)
            date = http_date(datetime.fromtimestamp(self._second, UTC))
            self._common = f"Server: IMDS/forewarn\r\nDate: {date}\r\n".encode()
            self.ok = self.opening(200)
            self.not_modified = self.opening(304)

    def opening(self, status: int) -> bytes:
        """Write how an answer begins: the status and the headers that all answers have."""
        return f"HTTP/1.1 {status} {REASONS[status]}\r\n".encode() + self._common
