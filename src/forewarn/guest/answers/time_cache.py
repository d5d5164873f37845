"""The time, read as seldom as possible: both kinds of it, and the headers that carry it."""

from asyncio import AbstractEventLoop
from datetime import UTC, datetime
from math import nan

from forewarn.clock import Clock
from forewarn.wire.azure import http_date

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
