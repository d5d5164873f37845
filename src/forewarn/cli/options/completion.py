"""Names that the shell completes: asked of the server at once, and without a word if that fails."""

import os
from collections.abc import Callable
from typing import Any

import typer

from forewarn.cli.session import DEFAULT_SERVER

# A person has pressed a key and waits.
SECONDS = 1.0
MOST = 1000


def names(what: str) -> Callable[[typer.Context, str], list[str]]:
    """Complete the names of machines, hosts or groups."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = _asked(what, server=_option(ctx, "server"), token=_option(ctx, "token"))
        except Exception:  # noqa: BLE001 - whatever it is, it must not spill into what is being typed
            return []
        return [name for name in found if name.startswith(incomplete)]

    return complete


def _option(ctx: Any, name: str) -> str | None:
    """Find an option as it was typed, after the verb or before."""
    while ctx is not None:
        if ctx.params.get(name):
            return str(ctx.params[name])
        ctx = ctx.parent
    return os.environ.get(f"FOREWARN_{name.upper()}") or None


def _asked(what: str, *, server: str | None, token: str | None) -> list[str]:
    # Not by the client that commands use: what it needs takes longer to load than the answer to come.
    import json
    import ssl
    from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

    place = server or DEFAULT_SERVER
    url = (place if "://" in place else f"http://{place}").rstrip("/")
    if not url.startswith(("http://", "https://")):
        return []
    handlers: list[Any] = [ProxyHandler({})]
    if url.startswith("https:"):
        handlers.append(
            HTTPSHandler(context=ssl.create_default_context(cafile=os.environ.get("FOREWARN_CA")))
        )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"{url}/v1/{what}?limit={MOST}", headers=headers)  # noqa: S310 - http or https, see above
    with build_opener(*handlers).open(request, timeout=SECONDS) as answer:
        return [str(each["name"]) for each in json.load(answer)[what]]
