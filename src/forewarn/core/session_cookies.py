"""Sessions of browsers: a token that was shown once lets a browser in for some days, by a cookie.

A session is its token's: it allows what the token allows, and nothing once the token is no longer good. Its
life is counted in real time, as browsers count that of their cookies; a token's is in service time.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.core.access import LOCAL_OPERATOR, Caller, Keyring, Token, caller_of, digest_of
from forewarn.core.errors import Unauthenticated, Conflict, NotFound, Refused

# What every secret of a session begins with, so that a scanner can find one that leaked.
SESSION_PREFIX = "fws_"
# A browser is likely used by the same person for a week; none keeps a cookie for longer than 400 days.
USUAL_LIFE, SHORTEST_LIFE, LONGEST_LIFE = timedelta(days=7), timedelta(minutes=1), timedelta(days=400)
# Of one token; the oldest go. Every browser of everybody who shares a token has one.
MOST_SESSIONS = 100
# The header that shows that a call was made by a page of the service itself.
CSRF_HEADER = "X-Forewarn-CSRF"

# One message for all of them: a guess teaches nothing. A cookie that comes twice is nobody's.
ENDED = (
    "the session is not known or has ended, or its token is no longer good: sign in again; "
    "if that does not help, remove the cookies of this site"
)
_NO_TOKENS = (
    "there is no token on this server yet, so that every call is the operator's: nothing to sign in to"
)
_WITH_SESSION = "a session is begun with a token, not with another session: send `Authorization: Bearer …`"
_NOTHING_TO_END = "this call has no session that could be ended: it was not made with the cookie of one"
_CSRF_NEEDED = (
    f"a call that changes something and is made with a session's cookie needs the header {CSRF_HEADER}, "
    "with the session's own `csrf`: GET /v1/session shows it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """What is kept of a session: never its secret."""

    digest: str
    token: str  # the digest of its token: a name may be another token's later
    created_at: datetime  # in real time, as its end is
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessions:
    """All sessions, by which callers are known."""

    sessions: Sequence[BrowserSession] = ()
    _by_digest: dict[str, BrowserSession] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_digest", {each.digest: each for each in self.sessions})

    def find(self, secret: str, *, real_now: datetime) -> BrowserSession | None:
        """Find the session that a secret belongs to, unless it is over."""
        digest = digest_of(secret)
        found = self._by_digest.get(digest)
        if found is None or not hmac.compare_digest(found.digest, digest) or found.expires_at <= real_now:
            return None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a call shows of its caller: the secret of a token, or that of a session."""

    token: str | None = None
    session: str | None = None  # None where something else was shown: a session counts only alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """A caller, and what it is known by."""

    caller: Caller
    token: Token | None = None  # None while there are no tokens
    session: BrowserSession | None = None  # None if the token itself was shown
    csrf: str | None = None  # what a call of the session that changes something must have with it


def identify(
    shown: Credentials, keyring: Keyring, sessions: OpenSessions, *, now: datetime, real_now: datetime
) -> Identified:
    """Find out who calls; raise Unauthenticated if it cannot be known."""
    if keyring.unused:
        return Identified(caller=LOCAL_OPERATOR)
    if shown.session is None:
        token = keyring.token(shown.token, now=now)
        return Identified(caller=caller_of(token), token=token)
    session = sessions.find(shown.session, real_now=real_now)
    of = None if session is None else keyring.find(session.token, now=now)
    if of is None:
        raise Unauthenticated(ENDED)
    return Identified(caller=caller_of(of), token=of, session=session, csrf=csrf_of(shown.session))


def csrf_of(secret: str) -> str:
    """Derive what a session's own pages know: whoever reads it cannot know the secret, nor its digest."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"forewarn csrf", hashlib.sha256).hexdigest()


def check_csrf(identified: Identified, given: Sequence[str]) -> None:
    """Refuse a call of a session that was not made by a page of the service itself."""
    if identified.csrf is None:
        return
    if len(given) != 1 or not hmac.compare_digest(given[0].encode(), identified.csrf.encode()):
        raise Refused(_CSRF_NEEDED)


def token_for_session(identified: Identified) -> Token:
    """Return the token that a session may be begun with; Conflict if the call was made without one."""
    if identified.token is None:
        raise Conflict(_NO_TOKENS)
    if identified.session is not None:
        raise Conflict(_WITH_SESSION)
    return identified.token


def session_to_end(identified: Identified) -> BrowserSession:
    """Return the session that a call was made with; NotFound if it was made with none."""
    if identified.session is None:
        raise NotFound(_NOTHING_TO_END)
    return identified.session


def begun(token: Token, *, secret: str, real_now: datetime, life: timedelta) -> BrowserSession:
    """Begin a session of a token."""
    return BrowserSession(
        digest=digest_of(secret), token=token.digest, created_at=real_now, expires_at=real_now + life
    )


def surplus(sessions: Sequence[BrowserSession], *, coming: int = 1) -> Sequence[BrowserSession]:
    """Return those of a token's sessions, the oldest first, that must make room for coming ones."""
    return sessions[: max(0, len(sessions) + coming - MOST_SESSIONS)]
