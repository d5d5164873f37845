"""Both guest clients with one interface for one suite of tests, and a clock that their pauses advance."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pytest

from forewarn import AsyncGuestClient, Document, Event, GuestClient, Instance
from forewarn.sdk.discovery import Surroundings
from forewarn.sdk.guest_calls import OnTrouble

T = TypeVar("T")


class Time:
    """A monotonic clock that only pauses advance."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def apause(self, seconds: float) -> None:
        self.pause(seconds)


class Client(Protocol):
    """The blocking interface that both clients have here."""

    url: str

    def events(self) -> Document: ...

    def approve(self, *events: Event | str) -> None: ...

    def instance(self) -> Instance: ...

    def watch(self, *, wait: int = 60, trouble: OnTrouble | None = None) -> Iterator[Document]: ...

    def seconds_left(self, event: Event) -> float | None: ...


class BlockingAsyncClient:
    """The asyncio client with a blocking interface."""

    def __init__(self, client: AsyncGuestClient, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._client = client
        self._run = run
        self.url = client.url
        self.seconds_left = client.seconds_left
        self.clock_skew = client.clock_skew

    def events(self) -> Document:
        return self._run(self._client.events())  # type: ignore[no-any-return]

    def approve(self, *events: Event | str) -> None:
        self._run(self._client.approve(*events))

    def instance(self) -> Instance:
        return self._run(self._client.instance())  # type: ignore[no-any-return]

    def watch(self, *, wait: int = 60, trouble: OnTrouble | None = None) -> Iterator[Document]:
        documents = self._client.watch(wait=wait, trouble=trouble)
        while True:
            yield self._run(anext(documents))  # type: ignore[arg-type]


@contextmanager
def blocking(url: str, *, time: Time | None = None, **more: Any) -> Iterator[Client]:
    if time is not None:
        more |= {"pause": time.pause, "monotonic": time}
    with GuestClient(url, **more) as client:
        yield client


@contextmanager
def awaited(url: str, *, time: Time | None = None, **more: Any) -> Iterator[Client]:
    if time is not None:
        more |= {"pause": time.apause, "monotonic": time}
    with asyncio.Runner() as runner:

        async def make() -> AsyncGuestClient:
            return AsyncGuestClient(url, **more)

        client = runner.run(make())
        try:
            yield BlockingAsyncClient(client, runner.run)
        finally:
            runner.run(client.aclose())


def discovered(kind: str, around: Surroundings, *, time: Time | None = None) -> str:
    """Return the URL that a client discovers."""
    time = time or Time()
    if kind == "blocking":
        with GuestClient.discover(around=around, pause=time.pause, monotonic=time) as client:
            return client.url

    async def find() -> str:
        found = await AsyncGuestClient.discover(around=around, pause=time.apause, monotonic=time)
        async with found as client:
            return client.url

    return asyncio.run(find())


BOTH = pytest.mark.parametrize("connect", [blocking, awaited], ids=["GuestClient", "AsyncGuestClient"])
