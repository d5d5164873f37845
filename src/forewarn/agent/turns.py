"""Whose turn it is: a handler may prepare for several events at once, but comes back from one by itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forewarn.agent.handling import Side


class Turns:
    """Keeps a handler's recovery apart from all else that it does: what came last must be what holds."""

    def __init__(self) -> None:
        self._preparing: Counter[str] = Counter()
        self._recovering: set[str] = set()
        self._change = asyncio.Condition()

    @asynccontextmanager
    async def take(self, side: Side, handler: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        async with self._change:
            await self._change.wait_for(lambda: self._is_free(side, handler))
            self._begin(side, handler)
        try:
            yield
        finally:
            self._end(side, handler)
            async with self._change:
                self._change.notify_all()

    def _is_free(self, side: Side, handler: str) -> bool:
        if handler in self._recovering:
            return False
        return side is Side.PREPARE or not self._preparing[handler]

    def _begin(self, side: Side, handler: str) -> None:
        if side is Side.PREPARE:
            self._preparing[handler] += 1
        else:
            self._recovering.add(handler)

    def _end(self, side: Side, handler: str) -> None:
        if side is Side.PREPARE:
            self._preparing[handler] -= 1
        else:
            self._recovering.discard(handler)
