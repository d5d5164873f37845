"""The HTTP calls of webhooks: signed, with a timeout, without redirects, and to allowed addresses only."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from datetime import datetime
from typing import TypeAlias
from weakref import WeakValueDictionary

import httpx

from forewarn.control.webhook_use_cases import HOW_TO_ALLOW
from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import LimitReached
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook, is_public
from forewarn.wire import cloudevents

# Resolves a host name to addresses, in the system's order; raises OSError or returns none if there are none.
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
# The blocking form, which returns the error.
BlockingLookup: TypeAlias = Callable[[str, int], Sequence[str] | OSError]

# More lookups than one project has webhooks, so that a project with dead name servers delays only itself.
MOST_AT_ONCE = 64


class PublicOnly:
    """Resolves a name if all of its addresses are public; returns no address otherwise."""

    def __init__(self, lookup: Lookup | None = None, *, is_public: Callable[[str], bool] = is_public) -> None:
        self._lookup = lookup or SystemLookup()
        self._is_public = is_public

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Resolve a name and check its addresses."""
        try:
            found = await self._lookup(host, port)
        except OSError:
            return ()
        return found if all(map(self._is_public, found)) else ()


class SystemLookup:
    """Resolves names with the system's resolver, on threads of its own.

    The loop's default thread pool is small and shared. Name servers that never answer would exhaust it and
    delay the end of the program. The threads here are limited, and each name has at most one. A caller that
    stops waiting does not end the lookup: its thread still counts towards the limit.
    """

    def __init__(self, *, most: int = MOST_AT_ONCE, ask: BlockingLookup | None = None) -> None:
        # Owner of all values: the pusher's loop.
        self._free = asyncio.Semaphore(most)
        self._ask = ask or _resolve
        self._running: dict[tuple[str, int], asyncio.Task[Sequence[str] | OSError]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Resolve a name; return an address unchanged."""
        target = host, port
        if target not in self._running:
            self._running[target] = asyncio.create_task(self._on_a_thread(host, port))
            self._running[target].add_done_callback(lambda _: self._running.pop(target))
        answer = await asyncio.shield(self._running[target])
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def _on_a_thread(self, host: str, port: int) -> Sequence[str] | OSError:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Sequence[str] | OSError] = loop.create_future()

        def settle(answer: Sequence[str] | OSError) -> None:
            if not found.done():
                found.set_result(answer)

        def look_up() -> None:
            try:
                answer = self._ask(host, port)
            except Exception as error:  # noqa: BLE001 - the waiting task must be answered
                answer = OSError(f"{type(error).__name__}: {error}")
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, answer)

        async with self._free:
            threading.Thread(target=look_up, name="forewarn-lookup", daemon=True).start()
            return await found


def _resolve(host: str, port: int) -> Sequence[str] | OSError:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return error if isinstance(error, OSError) else OSError(str(error))
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


# The timeout of a whole call in real seconds. A receiver with slow work should answer before doing it.
TIMEOUT = 10.0
# How much of an answer is read, so that the connection can be reused.
MOST_READ = 64 * 1024
LONGEST_ERROR = 300
# Calls at once, each with a connection. Their sum stays well below the reserved descriptors
# (`descriptors.RESERVE`). Receivers that never answer delay the records of their own project first.
MOST_OF_A_PROJECT = 4
MOST_OF_PROJECTS = 48
MOST_OF_OPERATORS = 32
# How many addresses of one name are tried.
MOST_ADDRESSES = 4
# The same message for an unknown name and a name that is not public, so that internal names do not leak.
NOT_PUBLIC = f"its address is not known, or not public; {HOW_TO_ALLOW}"


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
        """Take `wall`, the real time, with which receivers compute the age of a call.

        `guard` resolves a project's webhook to the addresses that it may use; None: it may use any address.
        """
        self._lineage = lineage
        self._wall = wall
        self._new_id = new_id
        self._timeout = timeout
        self._guard = guard
        # The system's certificates, where a private cloud adds its own authority.
        self._trusted = ssl.create_default_context()
        self._slots = _Slots()
        self._client = self._new_client(kept=MOST_OF_OPERATORS)
        # Connections to an address are not reused: another name with the same address must not share them.
        self._guarded = self._new_client(kept=0)

    async def send(self, webhook: Webhook, record: Record) -> str | None:
        """Send a record; return the error, or None on success.

        Wait first while too many calls run: that wait does not count towards the receiver's timeout.
        """
        body = cloudevents.event(record, lineage=self._lineage)
        async with self._slots.taken(webhook.owner):
            return await self._call(webhook, body, id_=f"{self._lineage.lower()}-{record.number}")

    async def send_test(self, webhook: Webhook) -> str | None:
        """Send a test message; return the error, or None on success.

        Raise LimitReached while too many calls run.
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
                return await self._post(webhook, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer within {self._timeout:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            return (str(error) or type(error).__name__)[:LONGEST_ERROR]

    async def _post(self, webhook: Webhook, body: bytes, headers: dict[str, str]) -> str | None:
        if webhook.owner is not None and self._guard is not None:
            return await self._post_guarded(self._guard, httpx.URL(webhook.url), body, headers)
        request = self._client.build_request("POST", webhook.url, content=body, headers=headers)
        return await self._send_request(self._client, request)

    async def _post_guarded(
        self, guard: Lookup, url: httpx.URL, body: bytes, headers: dict[str, str]
    ) -> str | None:
        """Call a checked address: resolving the name again could give another address."""
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
                return await self._send_request(self._guarded, request)
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

    async def _send_request(self, client: httpx.AsyncClient, request: httpx.Request) -> str | None:
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
    """Limits how many calls run at once: for each project, for all projects, and for operators' webhooks.

    Owner of all its values: the pusher's loop.
    """

    def __init__(self) -> None:
        self._of_operators = asyncio.Semaphore(MOST_OF_OPERATORS)
        self._of_projects = asyncio.Semaphore(MOST_OF_PROJECTS)
        # Of projects with running calls: only these calls keep an entry alive.
        self._by_project: WeakValueDictionary[ProjectName, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def taken(self, owner: ProjectName | None, *, waiting: bool = True) -> AsyncIterator[None]:
        """Hold a slot during the block; raise LimitReached if none is free and `waiting` is False."""
        if owner is None:
            wanted = [self._of_operators]
        else:
            own = self._by_project.setdefault(owner, asyncio.Semaphore(MOST_OF_A_PROJECT))
            wanted = [own, self._of_projects]
        if not waiting and any(each.locked() for each in wanted):
            raise LimitReached("too many webhooks are being called: try again in a moment")
        async with AsyncExitStack() as stack:
            for each in wanted:
                await stack.enter_async_context(each)
            yield
