"""The console as an ASGI app: files alone, for anybody; what they show is asked of the operator API."""

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

# An asset's path has the hash of its content, so it never changes. The page itself is asked for each time.
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
NEVER_KEPT = "no-store"

_FROM_ITSELF = ("script-src", "style-src", "img-src", "connect-src", "font-src", "manifest-src")
POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in _FROM_ITSELF),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
# What the API answers has the page's origin: none of it may be run as a script.
AS_THEY_ARE: Mapping[str, str] = {"X-Content-Type-Options": "nosniff"}
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    **AS_THEY_ARE,
}


def packaged_files() -> "WebFiles":
    """Read the files that come with forewarn."""
    from forewarn.console import web_files  # loaded when the page is asked for

    return web_files.packaged()


class ConsoleApp:
    """Answers with the page at every address of a view, and with the files it links to."""

    def __init__(self, files: Callable[[], "WebFiles"] = packaged_files) -> None:
        """Take what reads the files; they are read when the first of them is asked for."""
        self._files = cache(files)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        await self._answer(scope)(scope, receive, _without_body(send) if scope["method"] == "HEAD" else send)

    def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        if scope["method"] not in METHODS:
            return _not_allowed(scope["method"], path)
        if path in WITHOUT_SLASH:
            query = scope["query_string"].decode("ascii", "ignore")
            return RedirectResponse(
                f"{HOME}?{query}" if query else HOME, headers={"Cache-Control": ASK_AGAIN}
            )
        headers = Headers(scope=scope)
        if not path.startswith(ASSETS):
            return _sent(self._files().index, headers, keep=ASK_AGAIN)
        asset = self._files().assets.get(path)
        return _not_found(path) if asset is None else _sent(asset, headers, keep=FOR_EVER)


class WithSecurityHeaders:
    """Says with each answer what a browser may do with it."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to whatever is answered, refusals too."""

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
    """Compare weakly, as RFC 9110 says of this header."""
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
    message = f"there is no file at {path}; after an update of the server, load the page again"
    return _error(404, "NotFound", message, {"Cache-Control": NEVER_KEPT})


def _not_allowed(method: str, path: str) -> Response:
    allowed = ", ".join(METHODS)
    message = f"{method} is not possible at {path}, only {allowed}"
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
