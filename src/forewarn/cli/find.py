"""Ids as people type them: whole, or the first few characters."""

from typing import Any

from forewarn.cli.client import Client, Refused
from forewarn.wire.guid import is_guid

SHORTEST = 4


def whole_id(client: Client, what: str, typed: str) -> str:
    """Complete the id of an order or an event that is listed."""
    if is_guid(typed):
        return typed.upper()
    one = what.removesuffix("s")
    if len(typed) < SHORTEST:
        raise Refused(f"{one} {typed}: give at least {SHORTEST} characters of its id")
    found = [each for each in _ids(client.all(what)[what]) if each.startswith(typed.upper())]
    if not found:
        raise Refused(f"no {one} begins with {typed}: `forewarn {one} list` shows those there are")
    if len(found) > 1:
        raise Refused(f"{len(found)} {what} begin with {typed}: {', '.join(found[:5])}; give more of it")
    return found[0]


def _ids(listed: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in listed]
