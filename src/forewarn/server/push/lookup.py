"""Looking up where a name leads, for calls to addresses that a project's people have chosen."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from forewarn.core.push import is_public

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
