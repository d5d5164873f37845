"""The server's time: its `Date`, carried on by the monotonic clock.

NotBefore is the server's time. A machine's own clock may be wrong, and jumps when it is put right.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forewarn.sdk.documents import parse_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """A moment that the server named, and when it did so by this machine's monotonic clock."""

    date: datetime
    received: float

    def now(self, monotonic: float) -> datetime:
        """Return the server's time."""
        try:
            return self.date + timedelta(seconds=max(0.0, monotonic - self.received))
        except OverflowError:  # a server whose clock is at the end of all time
            return datetime.max.replace(tzinfo=UTC)


def read_date(header: str | None, *, received: float) -> ServerTime | None:
    """Read the `Date` of an answer, if it has one."""
    date = None if header is None else parse_moment(header)
    return None if date is None else ServerTime(date=date, received=received)
