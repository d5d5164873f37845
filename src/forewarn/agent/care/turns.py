"""Whose turn it is: a handler does one thing at a time, and of those that wait the most urgent goes next."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

# Seconds until it is too late, asked when a turn is given: NotBefore may have moved since.
Urgency: TypeAlias = Callable[[], float]


def whenever() -> float:
    """Return the urgency of what can wait: to come back from an event, while another is coming."""
    return float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    urgency: Urgency
    given: "asyncio.Future[None]"


class Turns:
    """The turns of one handler, among all events."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def turn(self, urgency: Urgency) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._take(urgency)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, urgency: Urgency) -> None:
        if not self._taken:
            self._taken = True
            return
        waiting = _Waiting(urgency, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.given
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:
                self._pass_on()  # it was given in the same moment
            raise

    def _pass_on(self) -> None:
        """Give the turn to the most urgent; of equals, to the one that has waited longest."""
        waiting = [each for each in self._waiting if not each.given.cancelled()]
        self._taken = bool(waiting)
        if waiting:
            following = min(waiting, key=lambda each: each.urgency())
            self._waiting.remove(following)
            following.given.set_result(None)
