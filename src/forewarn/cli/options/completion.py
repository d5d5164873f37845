"""Names and ids that the shell completes: asked of the server at once, and without a word if that fails."""

import os
from collections.abc import Callable
from typing import Any

import typer

from forewarn.cli.session import DEFAULT_SERVER

# A person has pressed a key and waits.
SECONDS = 1.0
MOST = 1000
WITHOUT_PAGES = ("drivers", "holds")
# How much of an id a person is shown, and all of it.
SHORT_ID, WHOLE_ID = 8, 36


def names(what: str) -> Callable[[typer.Context, str], list[str]]:
    """Complete the names of machines, hosts, groups or drivers."""
    return _completing(what, lambda found: [str(each["name"]) for each in found])


def ids(what: str) -> Callable[[typer.Context, str], list[str]]:
    """Complete the ids of orders, events, rollouts, holds or webhooks: as short as they are shown."""
    return _completing(what, lambda found: _shortened([str(each["id"]) for each in found]))


def _completing(
    what: str, choices: Callable[[list[Any]], list[str]]
) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = choices(_asked(what, server=_option(ctx, "server"), token=_option(ctx, "token")))
        except Exception:  # noqa: BLE001 - whatever it is, it must not spill into what is being typed
            return []
        typed = incomplete.casefold()
        return [each for each in found if each.casefold().startswith(typed)]

    return complete


def _shortened(known: list[str]) -> list[str]:
    """Shorten ids as far as they are told apart."""
    lengths = range(SHORT_ID, WHOLE_ID)
    enough = (length for length in lengths if len({each[:length] for each in known}) == len(known))
    length = next(enough, WHOLE_ID)
    return [each[:length] for each in known]


def _option(ctx: Any, name: str) -> str | None:
    """Find an option as it was typed, after the verb or before."""
    while ctx is not None:
        if ctx.params.get(name):
            return str(ctx.params[name])
        ctx = ctx.parent
    return os.environ.get(f"FOREWARN_{name.upper()}") or None


def _asked(what: str, *, server: str | None, token: str | None) -> list[Any]:
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
    pages = "" if what in WITHOUT_PAGES else f"?limit={MOST}"
    request = Request(f"{url}/v1/{what}{pages}", headers=headers)  # noqa: S310 - http or https, see above
    with build_opener(*handlers).open(request, timeout=SECONDS) as answer:
        listed: list[Any] = json.load(answer)[what]
        return listed
