"""When reasons are read again: nothing need be recorded when one ends by itself, as a gap or window does."""

from collections.abc import Iterable
from datetime import datetime

from forewarn.clock import monotonic

# A server may take a moment to look at what has come due; one that is stopped takes longer.
READ_AGAIN_EVERY = 2.0


class EndedReasons:
    """Tells once that a reason has ended, and then now and then until it is gone."""

    def __init__(self) -> None:
        self._told_at: float | None = None

    def any(self, ends: Iterable[datetime | None], *, now: datetime) -> bool:
        """Return whether to read reasons again that end at these times, by the server's clock."""
        if all(end is None or end > now for end in ends):
            self._told_at = None
            return False
        if self._told_at is not None and monotonic() - self._told_at < READ_AGAIN_EVERY:
            return False
        self._told_at = monotonic()
        return True
