"""Cursors of lists: where the last thing of a page stands, so that insertions shift nothing."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Select, tuple_

from forewarn.core.errors import Invalid

_LARGEST = 2**63 - 1  # what a column can hold


def encode(position: Sequence[str | int]) -> str:
    """Write the values of the columns that a list is ordered by as a cursor."""
    return urlsafe_b64encode(json.dumps(list(position)).encode()).decode().rstrip("=")


def following(
    query: Select[Any], by: Sequence[Column[Any]], after: str | None, *, limit: int, newest: bool
) -> Select[Any]:
    """Order a query by columns and take what comes after a cursor: one more than is asked for."""
    if limit < 1:
        raise Invalid(f"limit {limit}: expected at least 1")
    if after is not None:
        here, there = tuple_(*by), tuple_(*_decode(after, by))
        query = query.where(here < there if newest else here > there)
    return query.order_by(*(column.desc() if newest else column for column in by)).limit(limit + 1)


def _decode(cursor: str, by: Sequence[Column[Any]]) -> Sequence[str | int]:
    try:
        position = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:  # not base64, not UTF-8, not JSON
        position = None
    kinds = [column.type.python_type for column in by]
    if not isinstance(position, list) or [type(part) for part in position] != kinds:
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    if any(isinstance(part, int) and not 0 <= part <= _LARGEST for part in position):
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    return position
