"""Middleware in front of every endpoint: Host, Origin, authentication, limits, CSRF and body size.

A browser on the same computer can reach a loopback port, so any web page could send requests to the server.
The Host check stops names that an attacker points here (DNS rebinding). The Origin check stops other pages.
"""

import logging
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.api import error_answers
from forewarn.api.audit import READING
from forewarn.api.authentication import Authenticator, credentials_of
from forewarn.api.limits import BodyBudget, CallerTable, LimitedCaller, LimitExceeded, caller_at
from forewarn.core.access import LOCAL_OPERATOR, Caller
from forewarn.core.errors import ForewarnError
from forewarn.core.session_cookies import CSRF_HEADER, check_csrf
from forewarn.wire import authority

log = logging.getLogger(__name__)

# Probes need no token, and their answers contain no secrets.
OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})
# The stream's response does not end. Only a fleet's body may be large.
STREAM = "/v1/stream"
LARGE = ("PUT", "/v1/fleet")
# A hint: the usual reason why requests of the console's own pages are refused.
_BEHIND_A_PROXY = (
    "; if this service runs behind a proxy, set its URL in [operator] origins, and let the proxy pass on the "
    "Host header that browsers send"
)


class AddressMiddleware:
    """Refuses requests with a foreign Host or Origin, and recognizes requests that reached a proxy over TLS.

    The configured origins tell which requests came over TLS. The server ignores `X-Forwarded-Proto`, because
    any client can send it.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        addresses = frozenset(authority.with_port(_place(each), "https") for each in origins)
        self._over_tls = addresses
        self._names = frozenset({*(name.lower() for name in names), *(name for name, _ in addresses)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept the Host headers and origins of this server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._is_known(scope, headers.getlist("host")):
            message = "the Host header must be an IP address, localhost or set in [operator] names or origins"
            await error_answers.error_response(400, "BadHost", message)(scope, receive, send)
            return
        host = headers.get("host", "")
        if authority.with_port(host, "https") in self._over_tls:
            scope = {**scope, "scheme": "https"}
        scheme = scope["scheme"]
        foreign = [each for each in headers.getlist("origin") if not _is_same(each, scheme, host)]
        if foreign:
            hint = _BEHIND_A_PROXY if scheme == "http" and foreign[0].startswith("https:") else ""
            message = f"requests from web pages of {foreign[0][:100]!r} are not accepted{hint}"
            await error_answers.error_response(403, "Forbidden", message)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope, hosts: Sequence[str]) -> bool:
        if not hosts and scope.get("http_version") == "1.0":
            return True
        return len(hosts) == 1 and authority.is_expected(hosts[0], self._names)


class AuthenticationMiddleware:
    """Refuses requests without a valid token or session."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, callers: CallerTable) -> None:
        self._app = app
        self._authenticator = authenticator
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a known caller, a probe, or any caller while no token exists."""
        if scope["type"] == "http" and scope["path"] not in OPEN_TO_ALL:
            try:
                identified = await self._authenticator.identify(credentials_of(scope))
            except ForewarnError as error:
                await self._refusal(scope, error)(scope, receive, send)
                return
            scope.setdefault("state", {}).update(caller=identified.caller, identified=identified)
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, error: ForewarnError) -> JSONResponse:
        """Return 429 instead of the error if the address sends too many requests."""
        try:
            self._callers.admit(caller_at(_peer(scope)))
        except LimitExceeded as exceeded:
            return error_answers.http_refusal(exceeded)
        return error_answers.refusal(error)


class LimitMiddleware:
    """Refuses requests beyond the limits of their caller."""

    def __init__(self, app: ASGIApp, *, callers: CallerTable) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request until its response ends. Probes are free: to refuse one costs as much."""
        if scope["type"] != "http" or scope["path"] in OPEN_TO_ALL:
            await self._app(scope, receive, send)
            return
        caller: Caller = scope["state"]["caller"]
        is_local = caller is LOCAL_OPERATOR
        limited = caller_at(_peer(scope), is_local=True) if is_local else LimitedCaller("token", caller.name)
        try:
            with self._callers.call(limited, is_stream=scope["path"] == STREAM):
                await self._app(scope, receive, send)
        except LimitExceeded as exceeded:
            await error_answers.http_refusal(exceeded)(scope, receive, send)


class CsrfMiddleware:
    """Refuses changes with a session cookie that do not come from a page of the console.

    A browser sends its cookies with every request. Only the console's pages know the session's CSRF token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a read, a request without a session, or one with the session's CSRF token."""
        identified = scope.get("state", {}).get("identified")
        if identified is not None and scope["method"] not in READING:
            try:
                check_csrf(identified, Headers(scope=scope).getlist(CSRF_HEADER))
            except ForewarnError as error:
                await error_answers.refusal(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class BodySizeMiddleware:
    """Refuses bodies that are too large, alone or together with other bodies."""

    def __init__(self, app: ASGIApp, *, budget: BodyBudget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the body on while it is within the limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_fleet = (scope["method"], scope["path"]) == LARGE
        limit = self._budget.limits.fleet if is_fleet else self._budget.limits.usual
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > limit:
            await error_answers.http_refusal(self._budget.too_large(limit))(scope, receive, send)
            return
        caller: Caller | None = scope.get("state", {}).get("caller")
        of_project = caller is None or caller.project is not None
        with self._budget.reading(limit, of_project=of_project) as take:

            async def counted() -> Message:
                message = await receive()
                take(len(message.get("body", b"")))
                return message

            await self._app(scope, counted, send)


class UnexpectedErrorMiddleware:
    """Answers an unexpected exception like any other error, and logs it once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Catch every exception of the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise
            message = "an internal error occurred; the server's log has the details"
            await error_answers.error_response(500, "Internal", message)(scope, receive, send)


def address_middleware(*, names: Collection[str], origins: Collection[str]) -> list[Middleware]:
    """List the middleware for everything at the operator address, outermost first.

    `origins` are the URLs at which browsers reach a proxy that ends TLS: `https://forewarn.example`.
    """
    return [
        Middleware(UnexpectedErrorMiddleware),
        Middleware(AddressMiddleware, names=names, origins=origins),
    ]


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _is_same(origin: str, scheme: str, host: str) -> bool:
    named, _, rest = origin.lower().partition("://")
    if named != scheme or named not in authority.DEFAULT_PORTS:
        return False
    name, port = authority.with_port(rest, scheme)
    return bool(name) and (name, port) == authority.with_port(host, scheme)


def _place(origin: str) -> str:
    return origin.partition("://")[2]
