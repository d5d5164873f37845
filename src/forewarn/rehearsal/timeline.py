"""The timeline: what happened in a scenario, in order, in time since its start.

The service and the guests are polled one after the other, so their news arrives out of order. A note is shown
once all news up to its time has arrived.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import TypeAlias

from forewarn.clock import monotonic

# The interval between two looks at a condition, in real seconds.
LOOK_EVERY = 0.05


async def until(
    condition: Callable[[], bool],
    *,
    within: float,
    meanwhile: Callable[[], Awaitable[None]],
    every: float = LOOK_EVERY,
) -> None:
    """Poll until a condition holds, for some real seconds at most."""
    deadline = monotonic() + within
    while not condition() and monotonic() < deadline:
        await meanwhile()
        await asyncio.sleep(min(every, max(0.0, deadline - monotonic())))


class ScenarioClock:
    """Service time since the start of a scenario; zero before."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now  # service time
        self.began: datetime | None = None

    def begin(self) -> datetime:
        """Start the clock; return the time."""
        self.began = self.now()
        return self.began

    def elapsed(self) -> timedelta:
        """Return the time since the start."""
        return timedelta() if self.began is None else self.now() - self.began


Show: TypeAlias = Callable[[timedelta, str, str], None]  # time since the start, actor, message


class Rank(IntEnum):
    """The order of notes with the same time, which are common on a manual clock."""

    ANNOUNCED = 0
    SEEN = 1
    APPROVED = 2
    STARTED = 3
    OTHER = 4
    ENDED = 5


@dataclass(frozen=True, slots=True, order=True)
class _Noted:
    at: datetime
    rank: Rank
    number: int
    who: str
    what: str


class Timeline:
    """Shows notes in order."""

    def __init__(self, clock: ScenarioClock, show: Show) -> None:
        self._clock = clock
        self._show = show
        self._kept: list[_Noted] = []
        self._count = 0
        self._shown = timedelta()

    def note(self, who: str, what: str, *, at: datetime | None = None, rank: Rank = Rank.OTHER) -> None:
        """Add a note, by default for the current time."""
        self._count += 1
        self._kept.append(_Noted(at or self._clock.now(), rank, self._count, who, what))

    def show(self, until: datetime | None = None) -> None:
        """Show the notes up to a time, or all."""
        due = sorted(each for each in self._kept if until is None or each.at <= until)
        self._kept = [each for each in self._kept if until is not None and each.at > until]
        for each in due:
            # Never go back: the clock of another computer may have been corrected.
            self._shown = max(self._shown, self._elapsed(each.at))
            self._show(self._shown, each.who, each.what)

    def _elapsed(self, at: datetime) -> timedelta:
        began = self._clock.began
        return timedelta() if began is None else at - began
