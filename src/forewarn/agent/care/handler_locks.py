"""Whose turn it is: a handler does one thing at a time, for whichever event, in the order it is asked."""

import asyncio
from collections import defaultdict
from contextlib import AbstractAsyncContextManager


class Turns:
    """Keeps what a handler does for one event apart from what it does for another.

    Its programs may hold a lock of their own, and what it did last must be what holds.
    """

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def take(self, handler: str) -> AbstractAsyncContextManager[None]:
        """Wait for a turn, and have it."""
        return self._locks[handler]
