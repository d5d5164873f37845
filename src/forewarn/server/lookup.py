"""Looking up where a name leads, for calls that somebody else has chosen the address of."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from forewarn.core.targets import is_public

# Gives the addresses of a name, as the system would try them; OSError, or nothing, if there are none.
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class PublicOnly:
    """Gives the addresses of a name if all of them are public, and otherwise nothing."""

    def __init__(self, lookup: Lookup | None = None, *, is_public: Callable[[str], bool] = is_public) -> None:
        self._lookup = lookup or addresses_of
        self._is_public = is_public

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Look a name up, and judge what it leads to."""
        try:
            found = await self._lookup(host, port)
        except OSError:
            return ()
        return found if all(map(self._is_public, found)) else ()


async def addresses_of(host: str, port: int) -> Sequence[str]:
    """Look a name up; an address is given back as it is.

    The loop's own threads are few and shared: somebody whose name servers never answer would use them up, and
    keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(answer: Sequence[str] | OSError) -> None:
        if found.done():
            return
        if isinstance(answer, OSError):
            found.set_exception(answer)
        else:
            found.set_result(answer)

    def look_up() -> None:
        answer = _looked_up(host, port)
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(settle, answer)

    threading.Thread(target=look_up, name="forewarn-lookup", daemon=True).start()
    return await found


def _looked_up(host: str, port: int) -> Sequence[str] | OSError:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return error if isinstance(error, OSError) else OSError(str(error))
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))
