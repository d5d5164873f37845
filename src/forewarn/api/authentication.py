"""Authentication: who asks, by tokens and sessions in memory, at most a moment old, also with no store."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise

from starlette.datastructures import Headers
from starlette.types import Scope

from forewarn.api.services import RunReading
from forewarn.clock import monotonic
from forewarn.control.token_use_cases import BrowserSessions
from forewarn.core.errors import Unavailable
from forewarn.core.session_cookies import Credentials, Identified, identify
from forewarn.signals import Signal
from forewarn.wire import authority

COOKIE = "forewarn-session"
# A browser takes such a cookie from a page under TLS alone, and never from another name of the same domain.
SECURE_PREFIX = "__Host-"
# What browsers say of requests that the page itself has made, or the person at the address bar. A page at
# another port of the same name is `same-site`: its requests have the cookie with them all the same.
_OWN_REQUESTS = frozenset({"same-origin", "none"})
# How often the cookie's name is looked for: browsers send it once, and others may end with it.
_MOST_MENTIONS = 8


def credentials_of(scope: Scope) -> Credentials:
    """Return what a request shows; an Authorization header counts, whatever stands beside it."""
    headers = Headers(scope=scope)
    shown = headers.getlist("authorization")
    return Credentials(token=_token(shown)) if shown else Credentials(session=session_secret(scope))


def session_secret(scope: Scope) -> str | None:
    """Return what the session's cookie has; an empty text, which no session has, if it was sent twice."""
    headers = Headers(scope=scope)
    if any(each.lower() not in _OWN_REQUESTS for each in headers.getlist("sec-fetch-site")):
        return None
    found = _values("; ".join(headers.getlist("cookie")), cookie_name(scope))
    if len(found) > 1:
        return ""
    return found[0] if found else None


def cookie_name(scope: Scope) -> str:
    """Return the name of the session's cookie: browsers do not tell servers apart by their ports."""
    _, port = authority.with_port(Headers(scope=scope).get("host", ""), scope["scheme"])
    name = f"{COOKIE}-{port}"
    return SECURE_PREFIX + name if is_secure(scope) else name


def is_secure(scope: Scope) -> bool:
    """Return whether the browser has made a request under TLS, which a proxy may have ended."""
    return bool(scope["scheme"] == "https")


def _values(cookies: str, name: str) -> list[str]:
    """Return the values of the first cookies of a name: a header may be long, and a stranger's."""
    pieces = cookies.split(f"{name}=", _MOST_MENTIONS)
    return [
        after.partition(";")[0].strip()
        for before, after in pairwise(pieces)
        if not before.strip() or before.rstrip().endswith(";")
    ]


def _token(headers: Sequence[str]) -> str | None:
    if len(headers) != 1:
        return None
    scheme, _, given = headers[0].strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return given.strip() or None
        case "basic":
            return _password(given) or None
        case _:
            return None


def _password(given: str) -> str:
    """Take the password of Basic authentication, whatever the name: calendars can send nothing else."""
    try:
        return b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


# A token that another process makes or revokes must count within a second. Where calls come often, the store
# is looked at beside them, and none of them waits.
LOOK_AGAIN_AFTER = 0.5
LOOK_AT_LEAST_AFTER = 0.9
# Real seconds, in which a worker that does not hang has its turn.
LONGEST_WAIT = 1.0


class Authenticator:
    """Finds the caller by what a call shows.

    The store is looked at once in a while, whoever asks and however often: what a stranger sends costs a hash
    and a look-up.
    """

    def __init__(
        self,
        sessions: BrowserSessions,
        *,
        run: RunReading,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Load tokens and sessions; `run` is how they are looked at again later."""
        self._sessions = sessions
        self._run = run
        self._now = now
        self._monotonic = monotonic
        self._known = sessions.loaded()
        self.cut_off = Signal()  # somebody who was known may be no more
        self._looked_at = monotonic()
        self._looking: asyncio.Task[None] | None = None
        # By all callers, from when the first of them waits: who comes later does not wait anew.
        self._awaited_until: float | None = None
        # How often tokens have changed: by now, when the store was last looked at, and is being looked at.
        self._changes = self._changes_seen = self._changes_awaited = 0

    async def identify(self, shown: Credentials) -> Identified:
        """Return the caller; Unauthenticated if none can show that."""
        # While there are no tokens all callers are operators; one with a secret knows of the first.
        if self._must_look() or (self._known.keyring.unused and shown != Credentials()):
            # What hangs must not hold strangers' connections: then what is known must do.
            looking, now = self._look(), self._monotonic()
            if self._awaited_until is None:
                self._awaited_until = now + LONGEST_WAIT
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(looking), self._awaited_until - now)
            if self._is_behind():
                # What was ended must not do, nor that there were no tokens.
                raise Unavailable("tokens or sessions were changed, and cannot be read now: try again")
        elif self._monotonic() - self._looked_at > LOOK_AGAIN_AFTER:
            self._look()
        return identify(
            shown,
            self._known.keyring,
            self._known.sessions,
            now=self._now(),
            real_now=self._sessions.real_now(),
        )

    def forget(self, *, cut_off: bool = False) -> None:
        """Look at the store before the next call: tokens or sessions have changed, and that is saved.

        With `cut_off` callers may have lost what they are known by: those who follow the stream ask at once.
        """
        self._changes += 1
        if cut_off:
            self.cut_off.send()

    def _must_look(self) -> bool:
        return self._is_behind() or self._monotonic() - self._looked_at > LOOK_AT_LEAST_AFTER

    def _is_behind(self) -> bool:
        """Return whether something was changed that was not looked at since."""
        return self._changes_seen != self._changes

    def _look(self) -> "asyncio.Task[None]":
        """Look at the store, once for all who wait for it; the first of them may go away meanwhile."""
        is_behind = self._changes_awaited != self._changes
        if self._looking is None or self._looking.done() or is_behind:
            self._changes_awaited = self._changes
            self._awaited_until = None
            self._looking = asyncio.create_task(self._refresh(self._changes))
        return self._looking

    async def _refresh(self, changes: int) -> None:
        # While the store is away, what was known must do: operators want to see how the store is.
        with suppress(Unavailable):
            known = await self._run(lambda: self._sessions.loaded(self._known))
            if changes < self._changes_seen:
                return  # another look began later, and was sooner back
            self._known, self._changes_seen = known, changes
        self._looked_at = self._monotonic()
