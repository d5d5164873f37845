"""The console as an ASGI app. It serves public static files; their data comes from the operator API."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.console.console_paths import ASSETS, HOME, WITHOUT_SLASH
from forewarn.wire.answers.coding import write_body
from forewarn.wire.answers.service_answers import ErrorAnswer

if TYPE_CHECKING:
    from forewarn.console.web_files import WebFile, WebFiles

METHODS = ("GET", "HEAD")

# Asset paths contain a hash of all files, so their content never changes. Browsers revalidate the index.
IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"
NOT_STORED = "no-store"

_SAME_ORIGIN = ("script-src", "style-src", "img-src", "connect-src", "font-src", "manifest-src")
POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in _SAME_ORIGIN),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
# API answers have the same origin as the console, so browsers must never run them as scripts.
NO_SNIFFING: Mapping[str, str] = {"X-Content-Type-Options": "nosniff"}
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    **NO_SNIFFING,
}


def packaged_files() -> "WebFiles":
    """Read the installed files."""
    from forewarn.console import web_files  # loaded on the first request

    return web_files.packaged()


class ConsoleApp:
    """Serves the index at the address of every view, and the assets that it links to."""

    def __init__(self, files: Callable[[], "WebFiles"] = packaged_files) -> None:
        """Set the function that reads the files. It is called on the first request."""
        self._files = cache(files)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file."""
        await self._answer(scope)(scope, receive, _without_body(send) if scope["method"] == "HEAD" else send)

    def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        if scope["method"] not in METHODS:
            return _not_allowed(scope["method"], path)
        if path in WITHOUT_SLASH:
            query = scope["query_string"].decode("ascii", "ignore")
            return RedirectResponse(
                f"{HOME}?{query}" if query else HOME, headers={"Cache-Control": REVALIDATE}
            )
        headers = Headers(scope=scope)
        if not path.startswith(ASSETS):
            return _sent(self._files().index, headers, keep=REVALIDATE)
        asset = self._files().assets.get(path)
        return _not_found(path) if asset is None else _sent(asset, headers, keep=IMMUTABLE)


class WithSecurityHeaders:
    """Adds security headers to all responses of an app."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to the response, including errors."""

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, secured)


def _sent(file: "WebFile", headers: Headers, *, keep: str) -> Response:
    known = {"ETag": file.etag, "Cache-Control": keep, "Vary": "Accept-Encoding"}
    if _knows(headers.get("if-none-match", ""), file.etag):
        return Response(status_code=304, headers=known)
    content = file.content
    if file.is_compressible and _takes_gzip(headers.get("accept-encoding", "")):
        known["Content-Encoding"] = "gzip"
        content = file.compressed
    return Response(content, headers={**known, "Content-Type": file.media_type})


def _knows(if_none_match: str, etag: str) -> bool:
    """Compare weakly, as RFC 9110 requires for If-None-Match."""
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return "*" in tags or etag.removeprefix("W/") in tags


def _takes_gzip(accept_encoding: str) -> bool:
    weights = {}
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = parameter.replace(" ", "") or "q=1"
    weight = weights.get("gzip", weights.get("*", "q=0"))
    return weight.removeprefix("q=").strip("0.") != ""


def _not_found(path: str) -> Response:
    message = f"{path} does not exist; if the server was updated, reload the console"
    return _error(404, "NotFound", message, {"Cache-Control": NOT_STORED})


def _not_allowed(method: str, path: str) -> Response:
    allowed = ", ".join(METHODS)
    message = f"{path} does not support {method}; use {allowed}"
    return _error(405, "MethodNotAllowed", message, {"Allow": allowed})


def _error(status: int, code: str, message: str, headers: Mapping[str, str]) -> Response:
    body = write_body(ErrorAnswer(code=code, message=message))
    return JSONResponse(body, status_code=status, headers=dict(headers))


def _without_body(send: Send) -> Send:
    async def head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return head
