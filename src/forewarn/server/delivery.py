"""One call of a webhook: signed, bounded in time, never redirected."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime

import httpx

from forewarn.core.model import Record
from forewarn.core.webhooks import Webhook
from forewarn.wire import cloudevents

# Real seconds for a whole call. A receiver that has more to do should answer first.
TIMEOUT = 10.0
# What is read of an answer, so that the connection can be used again; nobody looks at it.
MOST_READ = 64 * 1024
LONGEST_ERROR = 300


class Delivery:
    """Calls webhooks."""

    def __init__(
        self,
        *,
        lineage: str,
        wall: Callable[[], datetime],
        new_id: Callable[[], str],
        timeout: float = TIMEOUT,
    ) -> None:
        """Take the real time, which receivers hold a call's age against."""
        self._lineage = lineage
        self._wall = wall
        self._new_id = new_id
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=timeout,
            # The system's own, where a private cloud keeps its authority's certificate.
            verify=ssl.create_default_context(),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            headers={"user-agent": "forewarn"},
        )

    async def send(self, webhook: Webhook, record: Record) -> str | None:
        """Send a record; returns what went wrong, None if nothing did."""
        body = cloudevents.event(record, lineage=self._lineage)
        return await self._call(webhook, body, id_=f"{self._lineage.lower()}-{record.number}")

    async def try_out(self, webhook: Webhook) -> str | None:
        """Send something that is no record; returns what went wrong."""
        id_ = self._new_id().lower()
        body = cloudevents.trial(id_, lineage=self._lineage, at=self._wall())
        return await self._call(webhook, body, id_=id_)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _call(self, webhook: Webhook, body: bytes, *, id_: str) -> str | None:
        seconds = int(self._wall().timestamp())
        headers = cloudevents.signed_headers(body, id_=id_, seconds=seconds, secret=webhook.secret)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._answer(webhook.url, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer within {self._timeout:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            return (str(error) or type(error).__name__)[:LONGEST_ERROR]

    async def _answer(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        async with self._client.stream("POST", url, content=body, headers=headers) as answer:
            taken = 0
            async for chunk in answer.aiter_raw():
                taken += len(chunk)
                if taken > MOST_READ:
                    break
        if answer.is_success:
            return None
        more = "; redirects are not followed" if answer.is_redirect else ""
        return f"it answered {answer.status_code}{more}"
