"""Requests that wait: for the document to change, or for their group to be answered at all."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from forewarn.core.words import GroupName

Who = TypeVar("Who")


class Waiters(Generic[Who]):
    """The requests that wait, by group. One that is woken looks again, and may wait on."""

    def __init__(self) -> None:
        self._waiters: dict[GroupName, dict[asyncio.Future[None], Who]] = {}

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def members(self) -> Iterator[Who]:
        """List the machines whose requests wait."""
        for waiters in self._waiters.values():
            yield from waiters.values()

    def add(self, group: GroupName, who: Who) -> asyncio.Future[None]:
        """Wait for something to happen to a group."""
        future = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(group, {})[future] = who
        return future

    def remove(self, group: GroupName, future: asyncio.Future[None]) -> None:
        """Wait no longer."""
        waiters = self._waiters.get(group)
        if waiters is not None:
            waiters.pop(future, None)
            if not waiters:
                del self._waiters[group]

    def wake(self, groups: Iterable[GroupName]) -> None:
        """Let the requests that wait in these groups look again."""
        for group in groups:
            for future in self._waiters.get(group, ()):
                end(future)

    def wake_all(self) -> None:
        """Let all requests look again."""
        self.wake(tuple(self._waiters))


def end(future: asyncio.Future[None]) -> None:
    """Stop waiting for something that may have come already."""
    if not future.done():
        future.set_result(None)
