"""One call of a webhook: signed, bounded in time, never redirected, and not to where it must not lead."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import datetime
from weakref import WeakValueDictionary

import httpx

from forewarn.control.push.webhooks import WHO_ALLOWS
from forewarn.core.errors import LimitReached
from forewarn.core.model.record import Record
from forewarn.core.push import Webhook
from forewarn.core.words import ProjectName
from forewarn.server.push.lookup import Lookup
from forewarn.wire import cloudevents

# Real seconds for a whole call. A receiver that has more to do should answer first.
TIMEOUT = 10.0
# What is read of an answer, so that the connection can be used again.
MOST_READ = 64 * 1024
LONGEST_ERROR = 300
# Calls at once, each with a connection. Together they stay well below the descriptors that are kept back
# (`descriptors.RESERVE`). Receivers that never answer delay the records of their own project first.
MOST_OF_A_PROJECT = 4
MOST_OF_PROJECTS = 48
MOST_OF_OPERATORS = 32
# Of a name that leads to several addresses.
MOST_ADDRESSES = 4
# One message for a name that is not known and one that is not public: names of the inside are not given away.
NOT_PUBLIC = f"its address is not known, or not public; {WHO_ALLOWS}"


class Delivery:
    """Calls webhooks."""

    def __init__(
        self,
        *,
        lineage: str,
        wall: Callable[[], datetime],
        new_id: Callable[[], str],
        timeout: float = TIMEOUT,
        guard: Lookup | None,
    ) -> None:
        """Take the real time, which receivers hold a call's age against.

        The guard says at which addresses a project's webhook may be called; None: as an operator's, anywhere.
        """
        self._lineage = lineage
        self._wall = wall
        self._new_id = new_id
        self._timeout = timeout
        self._guard = guard
        # The system's own, where a private cloud keeps its authority's certificate.
        self._trusted = ssl.create_default_context()
        self._slots = _Slots()
        self._client = self._new_client(kept=MOST_OF_OPERATORS)
        # Connections to an address, not to a name: the next name that leads there must not use them.
        self._guarded = self._new_client(kept=0)

    async def send(self, webhook: Webhook, record: Record) -> str | None:
        """Send a record; returns what went wrong, None if nothing did.

        It waits first while there are as many calls as may be: that is no fault of the receiver.
        """
        body = cloudevents.event(record, lineage=self._lineage)
        async with self._slots.taken(webhook.owner):
            return await self._call(webhook, body, id_=f"{self._lineage.lower()}-{record.number}")

    async def try_out(self, webhook: Webhook) -> str | None:
        """Send something that is no record; returns what went wrong.

        LimitReached while there are as many calls as may be.
        """
        id_ = self._new_id().lower()
        body = cloudevents.trial(id_, lineage=self._lineage, at=self._wall())
        async with self._slots.taken(webhook.owner, waiting=False):
            return await self._call(webhook, body, id_=id_)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()
        await self._guarded.aclose()

    async def _call(self, webhook: Webhook, body: bytes, *, id_: str) -> str | None:
        seconds = int(self._wall().timestamp())
        headers = cloudevents.signed_headers(body, id_=id_, seconds=seconds, secret=webhook.secret)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._sent(webhook, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer within {self._timeout:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            return (str(error) or type(error).__name__)[:LONGEST_ERROR]

    async def _sent(self, webhook: Webhook, body: bytes, headers: dict[str, str]) -> str | None:
        if webhook.owner is not None and self._guard is not None:
            return await self._sent_guarded(self._guard, httpx.URL(webhook.url), body, headers)
        request = self._client.build_request("POST", webhook.url, content=body, headers=headers)
        return await self._answer(self._client, request)

    async def _sent_guarded(
        self, guard: Lookup, url: httpx.URL, body: bytes, headers: dict[str, str]
    ) -> str | None:
        """Call the very address that was judged: looked up again, a name could lead elsewhere."""
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        error = None
        for address in (await guard(host.strip("[]"), port))[:MOST_ADDRESSES]:
            request = self._guarded.build_request(
                "POST",
                url.copy_with(host=address),
                content=body,
                headers={**headers, "host": url.netloc.decode("ascii")},
                extensions={"sni_hostname": host},
            )
            try:
                return await self._answer(self._guarded, request)
            except httpx.ConnectError as refused:
                error = str(refused) or "it cannot be reached"
        return error or NOT_PUBLIC

    def _new_client(self, *, kept: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=self._timeout,
            verify=self._trusted,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=kept),
            headers={"user-agent": "forewarn"},
        )

    async def _answer(self, client: httpx.AsyncClient, request: httpx.Request) -> str | None:
        answer = await client.send(request, stream=True)
        async with aclosing(answer):
            taken = 0
            async for chunk in answer.aiter_raw():
                taken += len(chunk)
                if taken > MOST_READ:
                    break
        if answer.is_success:
            return None
        more = "; redirects are not followed" if answer.is_redirect else ""
        return f"it answered {answer.status_code}{more}"


class _Slots:
    """Limits how many calls are under way: of each project, of all projects, and of operators' webhooks."""

    def __init__(self) -> None:
        self._of_operators = asyncio.Semaphore(MOST_OF_OPERATORS)
        self._of_projects = asyncio.Semaphore(MOST_OF_PROJECTS)
        # Those of projects that call now: each is kept by its calls alone.
        self._by_project: WeakValueDictionary[ProjectName, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def taken(self, owner: ProjectName | None, *, waiting: bool = True) -> AsyncIterator[None]:
        """Take a slot in turn while the block lasts; LimitReached if there is none and this must not wait."""
        if owner is None:
            wanted = [self._of_operators]
        else:
            own = self._by_project.setdefault(owner, asyncio.Semaphore(MOST_OF_A_PROJECT))
            wanted = [own, self._of_projects]
        if not waiting and any(each.locked() for each in wanted):
            raise LimitReached("as many webhooks are being called as may be at once: try again in a moment")
        async with AsyncExitStack() as stack:
            for each in wanted:
                await stack.enter_async_context(each)
            yield
