"""The time of a scenario, counted from its start, and what happened in it, in order.

The service and each guest are asked one after the other, so what they tell is not learnt in its order. Notes
are kept until everything has been heard up to their moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import TypeAlias

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


Show: TypeAlias = Callable[[timedelta, str, str], None]  # when, from the start, who, and what


class Rank(IntEnum):
    """What comes before what at one moment: a clock that is turned has many things at the same."""

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
    """Shows notes in their order."""

    def __init__(self, clock: ScenarioClock, show: Show) -> None:
        self._clock = clock
        self._show = show
        self._kept: list[_Noted] = []
        self._count = 0
        self._shown = timedelta()

    def note(self, who: str, what: str, *, at: datetime | None = None, rank: Rank = Rank.OTHER) -> None:
        """Keep what has happened, now or when it was."""
        self._count += 1
        self._kept.append(_Noted(at or self._clock.now(), rank, self._count, who, what))

    def show(self, until: datetime | None = None) -> None:
        """Show what was noted up to a moment, or all of it."""
        due = sorted(each for each in self._kept if until is None or each.at <= until)
        self._kept = [each for each in self._kept if until is not None and each.at > until]
        for each in due:
            # Not before what is shown already: another computer's clock may have been corrected.
            self._shown = max(self._shown, self._elapsed(each.at))
            self._show(self._shown, each.who, each.what)

    def _elapsed(self, at: datetime) -> timedelta:
        began = self._clock.began
        return timedelta() if began is None else at - began
