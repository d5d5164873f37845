"""The client of the operator API for asyncio."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx

from forewarn.client.replies import (
    PAGE,
    Body,
    Reply,
    RequestRefused,
    ServerUnreachable,
    given,
    read_reply,
    reply_of,
    reply_of_page,
    unreachable,
)
from forewarn.client.retrying import KEY_HEADER, RetryState, changes_something, new_key
from forewarn.wire.answers.answer import ApiAnswer, Page

A = TypeVar("A", bound=ApiAnswer)


class AsyncOperatorClient:
    """A client of one server."""

    def __init__(
        self, http: httpx.AsyncClient, *, wait: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Take an HTTP client whose base URL is the server; with an ASGI transport it may be an app."""
        self._http = http
        self._wait = wait

    @property
    def url(self) -> str:
        """The URL of the server."""
        return str(self._http.base_url)

    async def get(self, path: str, answer: type[A], **params: Any) -> Reply[A]:
        """Send a GET request."""
        return await self.call("GET", path, answer, params=params)

    async def post(self, path: str, answer: type[A], body: Body = None, **params: Any) -> Reply[A]:
        """Send a POST request; keys of the body that are None are omitted."""
        return await self.call("POST", path, answer, body=body and given(body), params=params)

    async def all(self, item: type[A], **params: Any) -> Reply[Page[A]]:
        """Get all pages of a list as one page."""
        key, after = f"{item.NOUN}s", None
        found: list[Any] = []
        while True:
            page = await self._send("GET", f"/v1/{key}", params={**params, "limit": PAGE, "after": after})
            found += page[key]
            after = page["next"]
            if after is None:
                return reply_of_page({key: found, "next": None}, item, url=self.url)

    async def call(
        self,
        method: str,
        path: str,
        answer: type[A],
        *,
        body: object = None,
        params: Mapping[str, Any] | None = None,
    ) -> Reply[A]:
        """Send a request and return the reply."""
        sent = await self._send(method, path, body=body, params=params or {})
        return reply_of(sent, answer, url=self.url)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def _send(
        self, method: str, path: str, *, body: object = None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        headers = {KEY_HEADER: new_key()} if method == "POST" else {}
        tries = RetryState(has_key=bool(headers), changes=changes_something(method, body=body, params=params))
        while True:
            try:
                sent = await self._http.request(
                    method, path, params=given(params), json=body, headers=headers
                )
                return read_reply(self.url, sent)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                failure: RequestRefused | ServerUnreachable = unreachable(self.url, error, method=method)
            except (RequestRefused, ServerUnreachable) as error:
                failure = error
            seconds = tries.pause_after(failure)
            if seconds is None:
                raise tries.outcome(failure) from None
            await self._wait(seconds)
