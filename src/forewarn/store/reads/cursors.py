"""Cursors of lists: the place of the last thing that was answered, so that insertions shift nothing."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, tuple_

from forewarn.core.errors import Invalid

Value = TypeVar("Value")
Place = tuple[str | int, ...]

_LARGEST = 2**63 - 1  # what a column can hold


def encode(place: Place) -> str:
    """Write a place as a cursor."""
    return urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode(cursor: str, *, like: tuple[type[str | int], ...]) -> Place:
    """Read a cursor, whose place must be made like this."""
    try:
        place = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:  # not base64, not UTF-8, not JSON
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(like):
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    if any(isinstance(part, int) and not 0 <= part <= _LARGEST for part in place):
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    return tuple(place)


def beyond(
    query: Select[Any],
    columns: Sequence[ColumnElement[Any]],
    place: Place | None,
    *,
    limit: int,
    newest: bool,
) -> Select[Any]:
    """Order a query by its columns and take what comes after a place: one more than is asked for."""
    if limit < 1:
        raise Invalid(f"limit {limit}: expected at least 1")
    if place is not None:
        here, there = tuple_(*columns), tuple_(*place)
        query = query.where(here < there if newest else here > there)
    return query.order_by(*(column.desc() if newest else column for column in columns)).limit(limit + 1)


def page(
    found: Sequence[Value], *, limit: int, place: Callable[[Value], Place]
) -> tuple[Sequence[Value], str | None]:
    """Cut off what was read too much, and say where to go on if there was."""
    shown = found[:limit]
    return shown, encode(place(shown[-1])) if len(found) > limit else None
