"""The time of a scenario, counted from its start."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from forewarn.clock import monotonic

# How often something is looked at that nothing announces; real seconds.
LOOK_EVERY = 0.05


async def until(
    condition: Callable[[], bool],
    *,
    within: float,
    meanwhile: Callable[[], Awaitable[None]],
    every: float = LOOK_EVERY,
) -> None:
    """Wait until something is so that nothing announces, for some real seconds at most."""
    deadline = monotonic() + within
    while not condition() and monotonic() < deadline:
        await meanwhile()
        await asyncio.sleep(min(every, max(0.0, deadline - monotonic())))


class ScenarioClock:
    """Service time, counted from the start of a scenario; before that it stands at nothing."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now  # service time
        self.began: datetime | None = None

    def begin(self) -> datetime:
        """Start, and return when that is."""
        self.began = self.now()
        return self.began

    def elapsed(self) -> timedelta:
        """Return how long it has run."""
        return timedelta() if self.began is None else self.now() - self.began
