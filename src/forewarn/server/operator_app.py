"""What is served at the operator address: the console at its paths, the operator API at all others."""

from collections.abc import Collection

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.api.guards import at_this_address
from forewarn.console.console_app import AS_THEY_ARE, SECURITY_HEADERS, ConsoleApp, WithSecurityHeaders
from forewarn.console.console_paths import is_console

# Shorter answers fit into a packet or two.
COMPRESSED_FROM = 2048
# As small as it gets in little time: a list of 1,000 machines shrinks to a thirteenth in two milliseconds.
COMPRESSION = 6


def operator_app(api: ASGIApp, *, names: Collection[str], origins: Collection[str] = ()) -> ASGIApp:
    """Put the console beside the API, behind the guards of Host and Origin that the API has of its own."""
    console: ASGIApp = ConsoleApp()
    for guard, given, options in reversed(at_this_address(names=names, origins=origins)):
        console = guard(console, *given, **options)
    console = WithSecurityHeaders(console, SECURITY_HEADERS)
    api = GZipMiddleware(api, COMPRESSED_FROM, COMPRESSION)
    api = WithSecurityHeaders(api, AS_THEY_ARE)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        face = console if scope["type"] == "http" and is_console(scope["path"]) else api
        await face(scope, receive, send)

    return app
