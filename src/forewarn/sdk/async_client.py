"""The client for programs that use asyncio."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from forewarn.clock import monotonic
from forewarn.sdk.discovery import Discovery, Surroundings, surroundings
from forewarn.sdk.documents import Document, Event
from forewarn.sdk.endpoint_client import EndpointClient
from forewarn.sdk.guest_calls import PERSISTENCE_SECONDS, WAIT_SECONDS, DocumentWatch, OnTrouble
from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.instances import Instance
from forewarn.sdk.transport import asyncio_driver
from forewarn.sdk.transport.connection_reuse import Steps

Result = TypeVar("Result")


class AsyncGuestClient(EndpointClient):
    """`GuestClient` for asyncio, whose `pause` is awaited; cancelling a task ends its request."""

    @classmethod
    def discover(
        cls,
        *,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        around: Surroundings | None = None,
        pause: Callable[[float], Awaitable[object]] | None = None,
        monotonic: Callable[[], float] = monotonic,
    ) -> "PendingDiscovery":
        """Find the endpoint of this machine, for `await` or `async with`; see `GuestClient.discover`."""
        connect = partial(cls, persistence=persistence, timeout=timeout, pause=pause, monotonic=monotonic)

        async def discovered() -> AsyncGuestClient:
            usual = (around or surroundings()).default_url
            async with connect(usual) as scout:
                found = await scout.look(around)
            return connect(found.url)

        return PendingDiscovery(discovered())

    async def look(self, around: Surroundings | None = None) -> Discovery:
        """Look for an endpoint, and return what was found in each place."""
        return await self._run(self._look(around))

    async def events(self) -> Document:
        """Return the current document."""
        return await self._run(self._events())

    async def approve(self, *events: Event | str) -> None:
        """Approve events, so that they may start early; returns once the approval is saved."""
        await self._run(self._approve(events))

    async def watch(
        self, *, wait: int = WAIT_SECONDS, trouble: OnTrouble | None = None
    ) -> AsyncIterator[Document]:
        """Yield the document now and after each change; see `GuestClient.watch`."""
        documents = DocumentWatch(self._calls, wait=wait, trouble=trouble)
        with contextlib.suppress(Closed):
            while True:
                yield await self._run(self._steps(documents.next(now=self._monotonic())))

    async def instance(self) -> Instance:
        """Return the instance metadata of this machine."""
        return await self._run(self._instance())

    async def aclose(self) -> None:
        """Close all connections, from any task: open requests raise `Closed`, and a watch ends."""
        self._connections.close()

    async def __aenter__(self) -> "AsyncGuestClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _run(self, steps: Steps[Result]) -> Result:
        return await asyncio_driver.run(steps, pause=self._pause)


class PendingDiscovery(Coroutine[Any, Any, AsyncGuestClient]):
    """The result of `discover`: a coroutine, and an asynchronous context manager."""

    def __init__(self, discovered: Coroutine[Any, Any, AsyncGuestClient]) -> None:
        self._discovered = discovered
        self._client: AsyncGuestClient | None = None

    def __await__(self) -> Generator[Any, Any, AsyncGuestClient]:
        return self._discovered.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine."""
        return self._discovered.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine."""
        return self._discovered.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._discovered.close()

    async def __aenter__(self) -> AsyncGuestClient:
        self._client = await self._discovered
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
