"""Cursors of lists: a cursor holds the position of the last row of a page, so insertions shift nothing."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Select, tuple_

from forewarn.core.errors import Invalid

_LARGEST = 2**63 - 1  # the largest number that a column can hold


def next_cursor(position: Sequence[str | int]) -> str:
    """Encode the values of the columns that a list is ordered by."""
    return urlsafe_b64encode(json.dumps(list(position)).encode()).decode().rstrip("=")


def page_query(
    query: Select[Any], by: Sequence[Column[Any]], after: str | None, *, limit: int, newest: bool
) -> Select[Any]:
    """Order a query by columns and select the rows after a cursor: one more than the limit."""
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
    if (
        not isinstance(position, list)
        or [type(value) for value in position] != kinds
        or any(isinstance(value, int) and not 0 <= value <= _LARGEST for value in position)
    ):
        raise Invalid(f"cursor {cursor!r} did not come from a list")
    return position
