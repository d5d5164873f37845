"""The client for programs with an event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from forewarn.clock import monotonic
from forewarn.sdk.discovery import Discovery, Surroundings, surroundings
from forewarn.sdk.documents import NEWEST_VERSION, Document, Event
from forewarn.sdk.endpoint_client import EndpointClient
from forewarn.sdk.guest_calls import PERSISTENCE_SECONDS, WAIT_SECONDS, DocumentWatch, OnTrouble
from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.instances import Instance
from forewarn.sdk.transport import asyncio_driver
from forewarn.sdk.transport.connection_reuse import Steps

Result = TypeVar("Result")


class AsyncGuestClient(EndpointClient):
    """As `GuestClient`, awaited; whatever it is doing ends when its task is cancelled."""

    def __init__(
        self,
        url: str,
        *,
        api_version: str = NEWEST_VERSION,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Take what `GuestClient` takes; `pause` is awaited."""
        super().__init__(
            url, api_version=api_version, persistence=persistence, timeout=timeout, monotonic=monotonic
        )
        self._pause = pause

    @classmethod
    def discover(
        cls,
        *,
        persistence: float = PERSISTENCE_SECONDS,
        timeout: float | None = None,
        around: Surroundings | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = monotonic,
    ) -> "Discovering":
        """Find the endpoint of this machine; see `GuestClient.discover`. For `await` and for `async with`."""
        settings: dict[str, Any] = {"persistence": persistence, "timeout": timeout, "pause": pause}
        settings["monotonic"] = monotonic

        async def discovered() -> AsyncGuestClient:
            usual = (around or surroundings()).default_url
            async with cls(usual, **settings) as scout:
                found = await scout.look(around)
            return cls(found.url, **settings)

        return Discovering(discovered())

    async def look(self, around: Surroundings | None = None) -> Discovery:
        """Look for an endpoint, and return what was found where."""
        return await self._run(self._look(around))

    async def events(self) -> Document:
        """Return the machine's document as it is now."""
        return await self._run(self._events())

    async def approve(self, *events: Event | str) -> None:
        """Let events start before their time, by their ids; returns when that is saved."""
        await self._run(self._approve(events))

    async def watch(
        self, *, wait: int = WAIT_SECONDS, trouble: OnTrouble | None = None
    ) -> AsyncIterator[Document]:
        """Yield the document now, and then each time it changes; see `GuestClient.watch`."""
        documents = DocumentWatch(self._calls, wait=wait, trouble=trouble)
        with contextlib.suppress(Closed):
            while True:
                yield await self._run(self._steps(documents.next(now=self._monotonic())))

    async def instance(self) -> Instance:
        """Return who this machine is."""
        return await self._run(self._instance())

    async def aclose(self) -> None:
        """Hang up, from any task of the loop: what is being asked ends with `Closed`, and a watch ends."""
        self._connections.close()

    async def __aenter__(self) -> "AsyncGuestClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[Result]) -> Result:
        return await asyncio_driver.run(steps, pause=self._pause)


class Discovering(Coroutine[Any, Any, AsyncGuestClient]):
    """A client to be awaited, or entered at once, as users of `GuestClient.discover` expect."""

    def __init__(self, discovered: Coroutine[Any, Any, AsyncGuestClient]) -> None:
        self._discovered = discovered
        self._client: AsyncGuestClient | None = None

    def __await__(self) -> Generator[Any, Any, AsyncGuestClient]:
        return self._discovered.__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a coroutine does."""
        return self._discovered.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error, as a coroutine does."""
        return self._discovered.throw(*error)

    def close(self) -> None:
        """End, as a coroutine does."""
        self._discovered.close()

    async def __aenter__(self) -> AsyncGuestClient:
        self._client = await self._discovered
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
