"""The endpoint that the agent watches: a given URL, the first of several to answer, or a discovered one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

from forewarn.agent.care.agent_context import OnEndpointTrouble
from forewarn.clock import SystemClock, monotonic
from forewarn.sdk.answer_reading import backoff
from forewarn.sdk.async_client import AsyncGuestClient
from forewarn.sdk.documents import NEWEST_VERSION, Document, Event
from forewarn.sdk.guest_errors import EndpointUnavailable, GuestError
from forewarn.sdk.instances import Instance

# After this time without an answer, the agent looks for another endpoint.
SWITCH_SECONDS = 30.0
# The callers retry themselves, so that they can report an error at once.
ONE_TRY = 0.0


class CurrentEndpoint:
    """The endpoint that the agent currently uses."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        api_version: str = NEWEST_VERSION,
        speed: float = 1.0,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Take the URLs; without one, discover the endpoint. In a rehearsal, `speed` may differ from 1."""
        self._urls = urls
        self._version = api_version
        self._speed = speed
        self._pause = pause
        self._client: AsyncGuestClient | None = None  # kept, for its clock, until another is found
        self._abandoned = False
        self._silent_since: float | None = None

    @property
    def url(self) -> str | None:
        """The URL of the endpoint, once it is found."""
        return None if self._client is None else self._client.url

    @property
    def silent_for(self) -> float | None:
        """The seconds since the last answer to a poll; None before the first."""
        answered = None if self._client is None else self._client.last_answered
        return None if answered is None else monotonic() - answered

    def seconds_left(self, event: Event) -> float | None:
        """Estimate the time until an event may start."""
        left = None if self._client is None else self._client.seconds_left(event)
        if left is None or self._client is None or self._client.last_answered is None:
            return left
        ahead = (self._speed - 1.0) * (monotonic() - self._client.last_answered)
        return max(0.0, left - ahead)

    def server_now(self) -> datetime:
        """Estimate the current time at the endpoint; before it is found, return this machine's time."""
        return SystemClock().now() if self._client is None else self._client.server_now()

    async def approve(self, *events: Event | str) -> None:
        """Approve events."""
        await self._found.approve(*events)

    async def instance(self) -> Instance:
        """Return this machine's identity."""
        return await self._found.instance()

    async def check(self) -> None:
        """Raise an error if the endpoint does not answer."""
        await self._found.events()

    async def watch(self, *, trouble: OnEndpointTrouble | None = None) -> AsyncIterator[Document]:
        """Yield documents as they change, from an endpoint that answers."""
        while True:
            await self.find(trouble=trouble)
            try:
                async for document in self._watched(trouble):
                    yield document
            finally:
                self._abandoned = self._has_others

    async def find(self, *, trouble: OnEndpointTrouble | None = None) -> None:
        """Look for an endpoint until there is one; call `trouble` once with the first error."""
        failures = 0
        while self._client is None or self._abandoned:
            try:
                found = await self._search()
                await self.close()
                self._client, self._abandoned = found, False
            except GuestError as error:
                failures += 1
                if failures == 1 and trouble is not None:
                    trouble(error)
                await self._pause(backoff(failures))
        if failures and trouble is not None:
            trouble(None)

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @property
    def _found(self) -> AsyncGuestClient:
        if self._client is None:
            raise EndpointUnavailable("no endpoint is known yet")
        return self._client

    @property
    def _has_others(self) -> bool:
        """Whether there may be another endpoint."""
        return len(self._urls) != 1

    async def _search(self) -> AsyncGuestClient:
        if not self._urls:
            async with AsyncGuestClient.discover(persistence=ONE_TRY) as found:
                return self._client_at(found.url)
        if len(self._urls) == 1:
            return self._client_at(self._urls[0])
        return self._client_at(await _first_to_answer([self._client_at(url) for url in self._urls]))

    def _client_at(self, url: str) -> AsyncGuestClient:
        return AsyncGuestClient(url, api_version=self._version, persistence=ONE_TRY)

    async def _watched(self, trouble: OnEndpointTrouble | None) -> AsyncIterator[Document]:
        """Watch the current endpoint until it has been silent for too long and there may be another."""
        if self._client is None:
            return
        self._silent_since = None

        def on_trouble(error: EndpointUnavailable | None) -> None:
            self._silent_since = None if error is None else monotonic()
            if trouble is not None:
                trouble(error)

        documents = self._client.watch(trouble=on_trouble)
        while (document := await self._next(documents)) is not None:
            yield document

    async def _next(self, documents: AsyncIterator[Document]) -> Document | None:
        coming = asyncio.ensure_future(anext(documents))
        try:
            while not coming.done():
                await asyncio.wait({coming}, timeout=SWITCH_SECONDS / 2 if self._has_others else None)
                silent_for = 0.0 if self._silent_since is None else monotonic() - self._silent_since
                if not coming.done() and silent_for > SWITCH_SECONDS:
                    return None
            return coming.result()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def _first_to_answer(clients: Sequence[AsyncGuestClient]) -> str:
    """Poll all endpoints concurrently; return the URL of the first that answers."""
    asked = {asyncio.create_task(_answering(client)): client for client in clients}
    chosen: str | None = None
    errors: list[GuestError] = []
    try:
        for answered in asyncio.as_completed(asked):
            try:
                chosen = await answered
                break
            except GuestError as error:
                errors.append(error)
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        for client in clients:
            await client.aclose()
    if chosen is None:
        raise EndpointUnavailable("; ".join(str(error) for error in errors))
    return chosen


async def _answering(client: AsyncGuestClient) -> str:
    await client.events()
    return client.url
