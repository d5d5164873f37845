"""What stands before every endpoint: who may be addressed, from where, and how much may be sent.

A browser on the same machine can reach a loopback port, so every web page could drive the service. A
page's name that points here is not let through (`Host`), nor a request that another page made (`Origin`).
"""

import logging
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.api import errors
from forewarn.api.authentication import Authenticator
from forewarn.core.errors import ForewarnError
from forewarn.wire import authority

log = logging.getLogger(__name__)

# Whatever watches over the service has no token, and learns nothing but that it works.
OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class OnlyKnownHosts:
    """Refuses requests addressed to a name that is not the service's."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if its Host is an address, localhost or a configured name."""
        if scope["type"] == "http" and not self._is_known(scope):
            message = "the Host header must be an IP address, localhost or a name set in [operator] names"
            await errors.answer(400, "BadHost", message)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        hosts = Headers(scope=scope).getlist("host")
        if not hosts and scope.get("http_version") == "1.0":
            return True
        if len(hosts) != 1:
            return False
        return authority.is_expected(hosts[0], self._names)


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
                message = f"requests from web pages of {foreign[0][:100]!r} are not accepted"
                await errors.answer(403, "Forbidden", message)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class OnlyKnownCallers:
    """Refuses requests without a good token, before anything else is looked at."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through if it has a good token, is a probe, or if there are no tokens."""
        if scope["type"] == "http" and scope["path"] not in OPEN_TO_ALL:
            try:
                caller = await self._authenticator.caller(Headers(scope=scope).getlist("authorization"))
            except ForewarnError as error:
                await errors.refusal(error)(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


class OnlySmallBodies:
    """Refuses bodies that are too large."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the body on, as long as it is not too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > self._limit:
            await errors.answer(413, "TooLarge", self._message())(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._limit:
                raise HTTPException(413, self._message())
            return message

        return counted

    def _message(self) -> str:
        return f"the body is larger than {self._limit} bytes"


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
            await errors.answer(500, "Internal", message)(scope, receive, send)


def guards(*, names: Collection[str], authenticator: Authenticator, body_bytes: int) -> list[Middleware]:
    """List all guards, the outermost first."""
    return [
        Middleware(UnexpectedErrors),
        Middleware(OnlyKnownHosts, names=names),
        Middleware(OnlySameOrigin),
        Middleware(OnlyKnownCallers, authenticator=authenticator),
        Middleware(OnlySmallBodies, limit=body_bytes),
    ]


def _is_same(origin: str, scheme: str, host: str) -> bool:
    named, _, rest = origin.lower().partition("://")
    if named != scheme or named not in _DEFAULT_PORTS:
        return False
    default = _DEFAULT_PORTS[named]
    name, port = authority.split(rest)
    addressed, addressed_port = authority.split(host)
    return bool(name) and (name, port or default) == (addressed, addressed_port or default)
