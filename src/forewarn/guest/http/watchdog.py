"""A connection's one timer, set anew only when it fires: most requests come and go without touching it."""

import asyncio
from collections.abc import Callable
from math import inf


class Watchdog:
    """Calls `check` when a deadline may have come; it returns the next one, or None if there is none."""

    __slots__ = ("_at", "_check", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, check: Callable[[], float | None]) -> None:
        self._loop = loop
        self._check = check
        self._at = inf
        self._handle: asyncio.TimerHandle | None = None

    def by(self, deadline: float) -> None:
        """Look no later than this, in the loop's time."""
        if deadline >= self._at:
            return
        self.stop()
        self._at = deadline
        self._handle = self._loop.call_at(deadline, self._fire)

    def stop(self) -> None:
        """Look no more."""
        self._at = inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self.stop()
        deadline = self._check()
        if deadline is not None:
            self.by(deadline)
