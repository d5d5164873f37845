"""Browser sessions: a cookie that represents a token.

A session has the rights of its token, and ends with it. The life of a session is in real time, as browsers
count it for cookies. The life of a token is in service time.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.core.access import LOCAL_OPERATOR, Caller, Keyring, Token, caller_of, digest_of
from forewarn.core.errors import Conflict, NotFound, Refused, Unauthenticated

# The prefix of every session secret, so that a scanner can find a leaked one.
SESSION_PREFIX = "fws_"
# One person likely uses a browser for a week. Browsers keep no cookie for more than 400 days.
USUAL_LIFE, SHORTEST_LIFE, LONGEST_LIFE = timedelta(days=7), timedelta(minutes=1), timedelta(days=400)
# For one token. Each browser of everyone who shares the token has a session; the oldest are dropped.
MOST_SESSIONS = 100
# The header that proves that a page of the server made the call.
CSRF_HEADER = "X-Forewarn-CSRF"

# One message for all cases, so that a guess reveals nothing. A cookie that is sent twice is not accepted.
ENDED = (
    "the session is not known or has ended, or its token is no longer valid: sign in again; "
    "if that does not help, remove the cookies of this site"
)
_NO_TOKENS = "this server has no tokens yet, so every call is the operator's: there is nothing to sign in to"
_WITH_SESSION = "a session starts with a token, not with another session: send `Authorization: Bearer …`"
_NOTHING_TO_END = "this call has no session to end: it was not made with a session's cookie"
_CSRF_NEEDED = (
    f"a call that changes something and is made with a session's cookie needs the header {CSRF_HEADER}, "
    "with the session's own `csrf`: GET /v1/session shows it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A saved session, without its secret."""

    digest: str
    token: str  # the digest of its token; another token may get the same name later
    created_at: datetime  # in real time, as is its end
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessions:
    """All sessions, to authenticate calls."""

    sessions: Sequence[BrowserSession] = ()
    _by_digest: dict[str, BrowserSession] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_digest", {each.digest: each for each in self.sessions})

    def find(self, secret: str, *, real_now: datetime) -> BrowserSession | None:
        """Find the open session of a secret."""
        digest = digest_of(secret)
        found = self._by_digest.get(digest)
        if found is None or not hmac.compare_digest(found.digest, digest) or found.expires_at <= real_now:
            return None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The secrets in a call: of a token or of a session."""

    token: str | None = None
    session: str | None = None  # None if the call has any other credentials: a session must be the only one


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """An authenticated caller, and the token or session that it used."""

    caller: Caller
    token: Token | None = None  # None before the first token exists
    session: BrowserSession | None = None  # None if the call has the token itself
    csrf: str | None = None  # the proof that a call needs if it uses the session and changes something


def identify(
    shown: Credentials, keyring: Keyring, sessions: OpenSessions, *, now: datetime, real_now: datetime
) -> Identified:
    """Authenticate a call; raise Unauthenticated if that fails."""
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
    """Derive the CSRF token of a session; it reveals neither the secret nor its digest."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"forewarn csrf", hashlib.sha256).hexdigest()


def check_csrf(identified: Identified, given: Sequence[str]) -> None:
    """Refuse a call of a session unless a page of the server made it."""
    if identified.csrf is None:
        return
    if len(given) != 1 or not hmac.compare_digest(given[0].encode(), identified.csrf.encode()):
        raise Refused(_CSRF_NEEDED)


def token_for_session(identified: Identified) -> Token:
    """Return the token to start a session with; Conflict if the call was made without one."""
    if identified.token is None:
        raise Conflict(_NO_TOKENS)
    if identified.session is not None:
        raise Conflict(_WITH_SESSION)
    return identified.token


def session_to_end(identified: Identified) -> BrowserSession:
    """Return the session of a call; NotFound if it has none."""
    if identified.session is None:
        raise NotFound(_NOTHING_TO_END)
    return identified.session


def begun(token: Token, *, secret: str, real_now: datetime, life: timedelta) -> BrowserSession:
    """Start a session."""
    return BrowserSession(
        digest=digest_of(secret), token=token.digest, created_at=real_now, expires_at=real_now + life
    )


def surplus(sessions: Sequence[BrowserSession], *, coming: int = 1) -> Sequence[BrowserSession]:
    """Return the oldest of a token's sessions that must end before others start."""
    return sessions[: max(0, len(sessions) + coming - MOST_SESSIONS)]
