"""Ids as people type them: whole, or the first few characters."""

from typing import Any

from forewarn.client.calls import OperatorClient
from forewarn.client.replies import RequestRefused
from forewarn.wire.fields import is_name
from forewarn.wire.guid import is_guid

SHORTEST = 4


def quoted_name(what: str, name: str) -> str:
    """Write a name so that it can stand in a path; what could not be a name is refused as unknown."""
    from urllib.parse import quote

    project, slash, rest = name.partition("/")
    if not name or slash:
        meant = (
            f"; say {rest} --project {project}"
            if what == "machine" and is_name(project) and is_name(rest)
            else ""
        )
        raise RequestRefused(f'{what} "{name}" does not exist{meant}')
    return quote(name, safe="")


def full_id(client: OperatorClient, what: str, typed: str) -> str:
    """Complete the id of an order or an event that is listed."""
    return typed.upper() if is_guid(typed) else str(find_by_prefix(client, what, typed)["id"])


def find_by_prefix(client: OperatorClient, what: str, typed: str) -> dict[str, Any]:
    """Find what is listed by how its id begins."""
    one = what.removesuffix("s")
    if len(typed) < SHORTEST:
        raise RequestRefused(f"{one} {typed}: give at least {SHORTEST} characters of its id")
    like = [each for each in client.all(what)[what] if each["id"].startswith(typed.upper())]
    if not like:
        listing = "holds" if one == "hold" else f"{one} list"
        raise RequestRefused(f"no {one} begins with {typed}: `forewarn {listing}` shows those there are")
    if len(like) > 1:
        some = ", ".join(each["id"] for each in like[:5])
        raise RequestRefused(f"{len(like)} {what} begin with {typed}: {some}; give more of it")
    return dict(like[0])
