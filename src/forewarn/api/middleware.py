"""What stands before every endpoint: who may be addressed, from where, and how much may be sent.

A browser on the same machine can reach a loopback port, so every web page could drive the service. A
page's name that points here is not let through (`Host`), nor a request that another page made (`Origin`).
"""

import logging
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.api import error_answers
from forewarn.api.audit import READING, AuditedChanges
from forewarn.api.authentication import Authenticator, credentials_of
from forewarn.api.limits import Bodies, CallerTable, LimitExceeded, Who, address_of
from forewarn.core.access import LOCAL_OPERATOR, Caller
from forewarn.core.errors import ForewarnError
from forewarn.core.session_cookies import CSRF_HEADER, check_csrf
from forewarn.wire import authority

log = logging.getLogger(__name__)

# Whatever watches over the service has no token, and learns nothing but that it works.
OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})
# The one call whose answer has no end, and the one whose body may be large.
STREAM = "/v1/stream"
LARGE = ("PUT", "/v1/fleet")
# What whoever serves the console behind a proxy has forgotten, if a page of its own is refused.
_BEHIND_A_PROXY = (
    "; if that is this service behind a proxy, set it in [operator] origins, and let the proxy pass on the "
    "Host header that browsers send"
)


class OnlyKnownHosts:
    """Refuses requests addressed to a name that is not the service's."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if its Host is an address, localhost or a configured name."""
        if scope["type"] == "http" and not self._is_known(scope):
            message = "the Host header must be an IP address, localhost or set in [operator] names or origins"
            await error_answers.answer(400, "BadHost", message)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        hosts = Headers(scope=scope).getlist("host")
        if not hosts and scope.get("http_version") == "1.0":
            return True
        if len(hosts) != 1:
            return False
        return authority.is_expected(hosts[0], self._names)


class AsBrowsersReachIt:
    """Takes requests that a proxy has ended TLS for as what they were.

    Which requests these are is known by the address that browsers use, as it is configured. What a proxy says
    of itself (`X-Forwarded-Proto`) everybody else can say too, and counts for nothing.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._under_tls = frozenset(authority.with_port(_place(each), "https") for each in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, as one under TLS if that is how browsers reach what it is addressed to."""
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            if authority.with_port(host, "https") in self._under_tls:
                scope = {**scope, "scheme": "https"}
        await self._app(scope, receive, send)


class OnlySameOrigin:
    """Refuses requests that a web page of another origin makes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if it names no origin, or the one it is addressed to."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            own = scope["scheme"], headers.get("host", "")
            foreign = [each for each in headers.getlist("origin") if not _is_same(each, *own)]
            if foreign:
                hint = _BEHIND_A_PROXY if own[0] == "http" and foreign[0].startswith("https:") else ""
                message = f"requests from web pages of {foreign[0][:100]!r} are not accepted{hint}"
                await error_answers.answer(403, "Forbidden", message)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class OnlyKnownCallers:
    """Refuses requests without a good token or session, before anything else is looked at."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, callers: CallerTable) -> None:
        self._app = app
        self._authenticator = authenticator
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if its caller is known, it is a probe, or there are no tokens."""
        if scope["type"] == "http" and scope["path"] not in OPEN_TO_ALL:
            try:
                identified = await self._authenticator.identify(credentials_of(scope))
            except ForewarnError as error:
                await self._refusal(scope, error)(scope, receive, send)
                return
            scope.setdefault("state", {}).update(caller=identified.caller, identified=identified)
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, error: ForewarnError) -> JSONResponse:
        """Refuse a stranger; one that asks too often is told so, whatever else it shares its address with."""
        try:
            self._callers.admit(address_of(_peer(scope)))
        except LimitExceeded as exceeded:
            return error_answers.http_refusal(exceeded)
        return error_answers.refusal(error)


class OnlyWithinLimits:
    """Refuses what a caller asks for beyond its limits."""

    def __init__(self, app: ASGIApp, *, callers: CallerTable) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request as long as it is being answered; a probe costs no more than to refuse it."""
        if scope["type"] != "http" or scope["path"] in OPEN_TO_ALL:
            await self._app(scope, receive, send)
            return
        try:
            with self._callers.call(_who(scope), is_stream=scope["path"] == STREAM):
                await self._app(scope, receive, send)
        except LimitExceeded as exceeded:
            await error_answers.http_refusal(exceeded)(scope, receive, send)


class OnlyOwnPages:
    """Refuses changes that a browser was made to ask for, by something else than a page of the service.

    A browser sends its cookies whoever made the request; what the session's pages know is theirs alone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if it changes nothing, has no session, or has what only its pages know."""
        identified = scope.get("state", {}).get("identified")
        if identified is not None and scope["method"] not in READING:
            try:
                check_csrf(identified, Headers(scope=scope).getlist(CSRF_HEADER))
            except ForewarnError as error:
                await error_answers.refusal(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class OnlySmallBodies:
    """Refuses bodies that are too large, each or all together."""

    def __init__(self, app: ASGIApp, *, bodies: Bodies) -> None:
        self._app = app
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the body on, as long as it is not too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_fleet = (scope["method"], scope["path"]) == LARGE
        limit = self._bodies.limits.fleet if is_fleet else self._bodies.limits.usual
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > limit:
            await error_answers.http_refusal(self._bodies.too_large(limit))(scope, receive, send)
            return
        caller: Caller | None = scope.get("state", {}).get("caller")
        of_project = caller is None or caller.project is not None
        with self._bodies.reading(limit, of_project=of_project) as take:

            async def counted() -> Message:
                message = await receive()
                take(len(message.get("body", b"")))
                return message

            await self._app(scope, counted, send)


class UnexpectedErrors:
    """Answers an unexpected exception as any other error, and logs it once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Catch whatever an endpoint raises."""
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
            message = "something went wrong in the service; its log says what"
            await error_answers.answer(500, "Internal", message)(scope, receive, send)


def address_middleware(*, names: Collection[str], origins: Collection[str]) -> list[Middleware]:
    """List the guards of everything that is served at the operator address, the outermost first.

    Origins are where browsers reach it through a proxy that ends TLS: `https://forewarn.example`.
    """
    known = {*names, *(authority.split(_place(each))[0] for each in origins)}
    return [
        Middleware(UnexpectedErrors),
        Middleware(OnlyKnownHosts, names=known),
        Middleware(AsBrowsersReachIt, origins=origins),
        Middleware(OnlySameOrigin),
    ]


def guards(
    *,
    names: Collection[str],
    origins: Collection[str],
    authenticator: Authenticator,
    callers: CallerTable,
    bodies: Bodies,
) -> list[Middleware]:
    """List all guards of the API, the outermost first."""
    return [
        *address_middleware(names=names, origins=origins),
        Middleware(OnlyKnownCallers, authenticator=authenticator, callers=callers),
        Middleware(OnlyWithinLimits, callers=callers),
        Middleware(AuditedChanges),
        Middleware(OnlyOwnPages),
        Middleware(OnlySmallBodies, bodies=bodies),
    ]


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _who(scope: Scope) -> Who:
    caller: Caller = scope["state"]["caller"]
    if caller is LOCAL_OPERATOR:
        return address_of(_peer(scope), is_local=True)
    return Who("token", caller.name)


def _is_same(origin: str, scheme: str, host: str) -> bool:
    named, _, rest = origin.lower().partition("://")
    if named != scheme or named not in authority.DEFAULT_PORTS:
        return False
    name, port = authority.with_port(rest, scheme)
    return bool(name) and (name, port) == authority.with_port(host, scheme)


def _place(origin: str) -> str:
    return origin.partition("://")[2]
