"""One call of a webhook: signed, bounded in time, never redirected, and not to where it must not lead."""

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

# Gives the addresses of a name, as the system would try them; OSError, or nothing, if there are none.
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
# The same, blocking.
Ask: TypeAlias = Callable[[str, int], Sequence[str] | OSError]

# More than the webhooks of one project, so that one whose name servers never answer holds up itself alone.
MOST_AT_ONCE = 64


class PublicOnly:
    """Gives the addresses of a name if all of them are public, and otherwise nothing."""

    def __init__(self, lookup: Lookup | None = None, *, is_public: Callable[[str], bool] = is_public) -> None:
        self._lookup = lookup or SystemLookup()
        self._is_public = is_public

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Look a name up, and judge what it leads to."""
        try:
            found = await self._lookup(host, port)
        except OSError:
            return ()
        return found if all(map(self._is_public, found)) else ()


class SystemLookup:
    """Looks names up as the system does; an address is given back as it is.

    The loop's own threads are few and shared: somebody whose name servers never answer would use them up, and
    keep the program from ending. So there are threads for this alone, no more of them than are let, and never
    two for one name. A caller that stops waiting does not end the lookup, and the thread stays counted.
    """

    def __init__(self, *, most: int = MOST_AT_ONCE, ask: Ask | None = None) -> None:
        """Take what asks the system, and waits for its answer."""
        # Owner of both: the pusher's loop.
        self._free = asyncio.Semaphore(most)
        self._ask = ask or _asked
        self._under_way: dict[tuple[str, int], asyncio.Task[Sequence[str] | OSError]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Look a name up."""
        target = host, port
        if target not in self._under_way:
            self._under_way[target] = asyncio.create_task(self._on_a_thread(host, port))
            self._under_way[target].add_done_callback(lambda _: self._under_way.pop(target))
        answer = await asyncio.shield(self._under_way[target])
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
            except Exception as error:  # noqa: BLE001 - whatever it is, the thread must be free again
                answer = OSError(f"{type(error).__name__}: {error}")
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, answer)

        async with self._free:
            threading.Thread(target=look_up, name="forewarn-lookup", daemon=True).start()
            return await found


def _asked(host: str, port: int) -> Sequence[str] | OSError:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return error if isinstance(error, OSError) else OSError(str(error))
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


# Real seconds for a whole call. A receiver that has more to do should answer first.
TIMEOUT = 10.0
# What is read of an answer, so that the connection can be used again.
MOST_READ = 64 * 1024
LONGEST_ERROR = 300
# Calls at once, each with a connection. Together they stay well below the descriptors that are kept back
# (`upkeep.RESERVE`). Receivers that never answer delay the records of their own project first.
MOST_OF_A_PROJECT = 4
MOST_OF_PROJECTS = 48
MOST_OF_OPERATORS = 32
# Of a name that leads to several addresses.
MOST_ADDRESSES = 4
# One message for a name that is not known and one that is not public: names of the inside are not given away.
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
    """Limits how many calls are under way: of each project, of all projects, and of operators' webhooks.

    Owner of all its values: the pusher's loop.
    """

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
