"""Ids as people type them: whole, or the first few characters."""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from forewarn.client.calls import OperatorClient
from forewarn.client.replies import RequestRefused
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.texts import is_guid, is_name

A = TypeVar("A", bound=ApiAnswer)

SHORTEST = 4
_PART_OF_ID = re.compile(r"[0-9A-Fa-f-]{1,36}")


def path_of(what: str, name: str) -> str:
    """Return the path of what has a name; what could not be a name is refused as unknown."""
    from urllib.parse import quote

    project, slash, rest = name.partition("/")
    if name in ("", ".", "..") or slash:
        meant = (
            f"; say {rest} --project {project}"
            if what == "machine" and is_name(project) and is_name(rest)
            else ""
        )
        raise RequestRefused(f'{what} "{name}" does not exist{meant}')
    return f"/v1/{what}s/{quote(name, safe='')}"


id_of: Callable[[ApiAnswer], str] = attrgetter("id")


def full_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the id of what is listed, by how it begins."""
    return typed.upper() if is_guid(typed) else id_of(find_by_prefix(client, kind, typed))


def path_by_id(client: OperatorClient, kind: type[ApiAnswer], typed: str) -> str:
    """Return the path of what is listed, by how its id begins."""
    return f"/v1/{kind.NOUN}s/{full_id(client, kind, typed)}"


def find_by_prefix(client: OperatorClient, kind: type[A], typed: str) -> A:
    """Find what is listed by how its id begins."""
    one = kind.NOUN
    if len(typed) < SHORTEST:
        raise RequestRefused(f"{one} {typed}: give at least {SHORTEST} characters of its id")
    like = _beginning(client, kind, typed)
    if not like:
        listing = {"hold": "holds", "event": "event list --all"}.get(f"{one}", f"{one} list")
        raise RequestRefused(f"no {one} begins with {typed}: `forewarn {listing}` shows those there are")
    if len(like) > 1:
        some = ", ".join(map(id_of, like[:5]))
        raise RequestRefused(f"{len(like)} {one}s begin with {typed}: {some}; give more of it")
    return like[0]


def _beginning(client: OperatorClient, kind: type[A], typed: str) -> list[A]:
    if not _PART_OF_ID.fullmatch(typed):
        return []
    # Past events are many: only those are asked for that may be meant.
    filters = {"all": True, "begins": typed} if kind.NOUN == "event" else {}
    return [each for each in client.all(kind, **filters).value.items if id_of(each).startswith(typed.upper())]
