"""Authentication by tokens and sessions in memory, so that it also works without the store."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise

from starlette.datastructures import Headers
from starlette.types import Scope

from forewarn.api.services import RunRead
from forewarn.clock import monotonic
from forewarn.control.token_use_cases import BrowserSessions
from forewarn.core.errors import Unavailable
from forewarn.core.session_cookies import Credentials, Identified, identify
from forewarn.signals import Signal
from forewarn.wire import authority

COOKIE = "forewarn-session"
# Browsers accept a cookie with this prefix only over TLS, and never for a whole domain.
SECURE_PREFIX = "__Host-"
# Sec-Fetch-Site of requests from the page itself or the address bar. A page at another port of the same name
# is `same-site`: its requests carry the cookie too, and must not count.
_OWN_REQUESTS = frozenset({"same-origin", "none"})
# The search for the cookie stops after this many matches: a name of another cookie can end with its name.
_MOST_MENTIONS = 8


def credentials_of(scope: Scope) -> Credentials:
    """Return the credentials of a request. An Authorization header takes precedence over a cookie."""
    headers = Headers(scope=scope)
    shown = headers.getlist("authorization")
    return Credentials(token=_token(shown)) if shown else Credentials(session=session_secret(scope))


def session_secret(scope: Scope) -> str | None:
    """Return the session cookie. A duplicate cookie gives an empty text, which matches no session."""
    headers = Headers(scope=scope)
    if any(each.lower() not in _OWN_REQUESTS for each in headers.getlist("sec-fetch-site")):
        return None
    found = _values("; ".join(headers.getlist("cookie")), cookie_name(scope))
    if len(found) > 1:
        return ""
    return found[0] if found else None


def cookie_name(scope: Scope) -> str:
    """Return the name of the session cookie, with the port: browsers share cookies between ports."""
    _, port = authority.with_port(Headers(scope=scope).get("host", ""), scope["scheme"])
    name = f"{COOKIE}-{port}"
    return SECURE_PREFIX + name if is_secure(scope) else name


def is_secure(scope: Scope) -> bool:
    """Return whether the browser sent the request over TLS, perhaps to a proxy."""
    return bool(scope["scheme"] == "https")


def _values(cookies: str, name: str) -> list[str]:
    """Return the values of a cookie. The work is bounded, because anyone can send a long header."""
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
    """Return the password of Basic authentication, the only kind that calendars can send."""
    try:
        return b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


# A token that another process creates or revokes takes effect within a second. While requests are frequent,
# the refresh runs in the background and no request waits for it.
REFRESH_IN_BACKGROUND_AFTER = 0.5
REFRESH_FIRST_AFTER = 0.9
# Real seconds. A worker that does not hang answers within this time.
LONGEST_WAIT = 1.0


class Authenticator:
    """Identifies callers by tokens and sessions in memory, and refreshes these from the store.

    The number of refreshes does not depend on the number of requests. A request with unknown credentials
    costs only a hash and a look-up.
    """

    def __init__(
        self,
        sessions: BrowserSessions,
        *,
        run: RunRead,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Load tokens and sessions. `run` refreshes them later."""
        self._sessions = sessions
        self._run = run
        self._now = now
        self._monotonic = monotonic
        self._known = sessions.loaded()
        self.cut_off = Signal()  # credentials may have become invalid
        self._refreshed_at = monotonic()
        self._refreshing: asyncio.Task[None] | None = None
        # All requests that wait for one refresh share this deadline, set by the first of them.
        self._wait_until: float | None = None
        # Number of changes of tokens or sessions: in all, at the last refresh, and at the running refresh.
        self._changes = self._changes_seen = self._changes_awaited = 0

    async def identify(self, shown: Credentials) -> Identified:
        """Return the caller with these credentials; Unauthenticated if they are not valid."""
        # Without tokens every caller is an operator. A caller with a secret may have the first token.
        if self._must_refresh() or (self._known.keyring.unused and shown != Credentials()):
            refreshing, now = self._refresh(), self._monotonic()
            if self._wait_until is None:
                self._wait_until = now + LONGEST_WAIT
            # A hanging store must not block requests: after the timeout, known tokens and sessions count.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(refreshing), self._wait_until - now)
            if self._is_behind():
                # A revoked token must not count, nor the time before the first token.
                raise Unavailable("tokens or sessions were changed, and cannot be read now: try again")
        elif self._monotonic() - self._refreshed_at > REFRESH_IN_BACKGROUND_AFTER:
            self._refresh()
        return identify(
            shown,
            self._known.keyring,
            self._known.sessions,
            now=self._now(),
            real_now=self._sessions.real_now(),
        )

    def forget(self, *, cut_off: bool = False) -> None:
        """Refresh before the next request, because tokens or sessions have changed in the store.

        With `cut_off`, credentials may have become invalid: open streams check theirs at once.
        """
        self._changes += 1
        if cut_off:
            self.cut_off.send()

    def _must_refresh(self) -> bool:
        return self._is_behind() or self._monotonic() - self._refreshed_at > REFRESH_FIRST_AFTER

    def _is_behind(self) -> bool:
        return self._changes_seen != self._changes

    def _refresh(self) -> "asyncio.Task[None]":
        """Start a refresh, or join the running one. It continues if the first caller disconnects."""
        is_behind = self._changes_awaited != self._changes
        if self._refreshing is None or self._refreshing.done() or is_behind:
            self._changes_awaited = self._changes
            self._wait_until = None
            self._refreshing = asyncio.create_task(self._load(self._changes))
        return self._refreshing

    async def _load(self, changes: int) -> None:
        # While the store is away, known callers can still see its state.
        with suppress(Unavailable):
            known = await self._run(lambda: self._sessions.loaded(self._known))
            if changes < self._changes_seen:
                return  # a later refresh finished first
            self._known, self._changes_seen = known, changes
        self._refreshed_at = self._monotonic()
