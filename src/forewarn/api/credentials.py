"""What a request shows of its caller: a token in its Authorization header or, without one, a cookie."""

from base64 import b64decode
from collections.abc import Sequence
from itertools import pairwise

from starlette.datastructures import Headers
from starlette.types import Scope

from forewarn.core.session_cookies import Credentials
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
