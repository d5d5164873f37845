"""Answers to guests: status, headers and body."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from typing import NamedTuple

from forewarn.clock import Clock
from forewarn.guest.guest_requests import Refusal, RequestFault
from forewarn.wire import azure
from forewarn.wire.azure import http_date

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
END_OF_HEAD = b"\r\n\r\n"

# The cause may be over in a moment, and a poller comes back in a second anyway.
RETRY = b"Retry-After: 1\r\n"


class GuestAnswer(NamedTuple):
    """An answer without the status line and the headers that all answers share."""

    status: int
    rest: bytes  # the other headers, the empty line and the body


APPROVED = GuestAnswer(200, f"Content-Type: {JSON}\r\nContent-Length: 0\r\n\r\n".encode())


def content(body: bytes, *, kind: str = JSON) -> GuestAnswer:
    """Make an answer with a body."""
    return GuestAnswer(200, f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def text_or_json(value: object) -> GuestAnswer:
    """Make an answer from a text, or from any other value as JSON."""
    if isinstance(value, str):
        return content(value.encode(errors="replace"), kind=TEXT)
    return content(azure.compact(value))


def not_modified(etag: bytes) -> GuestAnswer:
    """Make the answer to a caller that has the current document."""
    return GuestAnswer(304, b'ETag: "' + etag + b'"' + END_OF_HEAD)


def with_header(answer: GuestAnswer, line: bytes) -> GuestAnswer:
    """Add a header to an answer."""
    return GuestAnswer(answer.status, line + answer.rest)


def relabelled(answer: GuestAnswer, kind: str) -> GuestAnswer:
    """Replace the content type of a JSON answer."""
    rest = answer.rest.replace(f"Content-Type: {JSON}".encode(), f"Content-Type: {kind}".encode(), 1)
    return GuestAnswer(answer.status, rest)


def without_body(answer: GuestAnswer) -> GuestAnswer:
    """Remove the body, for HEAD."""
    head, _, _ = answer.rest.partition(END_OF_HEAD)
    return GuestAnswer(answer.status, head + END_OF_HEAD)


class ErrorAnswers:
    """Makes and counts error answers; each has a unique request id."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self.count = 0

    def error(self, status: int, body: bytes, headers: bytes = b"") -> GuestAnswer:
        """Make an error answer."""
        self.count += 1
        request_id = f"x-ms-request-id: {self._new_id().lower()}\r\n".encode()
        return with_header(GuestAnswer(status, content(body).rest), headers + request_id)

    def refusal(self, refusal: Refusal) -> GuestAnswer:
        """Answer a refused request."""
        return self.error(refusal.status, refusal.body, refusal.headers)

    def fault(self, fault: RequestFault) -> GuestAnswer:
        """Answer a request that cannot be parsed."""
        return self.error(fault.status, azure.error(fault.text), RETRY if fault.retry else b"")

    def invalid(self, why: str) -> GuestAnswer:
        """Answer an invalid approval or deferral."""
        return self.error(400, azure.error(f"Bad request. {why}"))

    def conflict(self, why: str) -> GuestAnswer:
        """Answer a deferral that is not possible now."""
        return self.error(409, azure.error(f"Conflict. {why}"))

    def not_found(self) -> GuestAnswer:
        """Answer an unknown caller exactly like a request for an unknown path."""
        return self.error(404, azure.NOT_FOUND)

    def too_many(self) -> GuestAnswer:
        """Answer a caller over its rate limit."""
        return self.error(429, azure.error("Too many requests"), RETRY)

    def unavailable(self, why: str) -> GuestAnswer:
        """Answer a request that may succeed later."""
        return self.error(503, azure.error(why), RETRY)

    def broken(self) -> GuestAnswer:
        """Answer after an internal error."""
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
    """The last reading of real and service time, and the first bytes of answers in that second."""

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
        """Read the clock if the time may have changed; return real time.

        The loop's time does not change while the loop handles arrived data. A burst of requests therefore
        reads the clock once.
        """
        real = self.time()
        if real != self.valid_at:
            self.renew(real)
        return real

    def until(self, seconds: float) -> float | None:
        """Return the real seconds until a service time; None if only an advance of the clock reaches it."""
        speed = self._clock.speed
        return None if speed == 0 else max(0.0, seconds - self._clock.seconds()) / speed

    def renew(self, real: float) -> None:
        """Read the clock."""
        self.real = real
        # The loop's time has a resolution of milliseconds. Within one, a manual clock may be advanced and a
        # scaled clock may run far, so the reading of such a clock is never reused (nan equals nothing).
        self.valid_at = real if 0 < self._clock.speed <= 1 else nan
        self.seconds = self._clock.seconds()
        if int(self.seconds) != self._second:
            self._second = int(self.seconds)
            date = http_date(datetime.fromtimestamp(self._second, UTC))
            self._common = f"Server: IMDS/forewarn\r\nDate: {date}\r\n".encode()
            self.ok = self.opening(200)
            self.not_modified = self.opening(304)

    def opening(self, status: int) -> bytes:
        """Return the status line and the headers that all answers share."""
        return f"HTTP/1.1 {status} {REASONS[status]}\r\n".encode() + self._common
