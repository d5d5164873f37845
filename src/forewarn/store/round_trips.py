"""Several statements in one round trip to the database.

SQLAlchemy executes each statement as usual. PostgreSQL gets all of them before it answers the first one
(`opening/pipelined_postgresql.py`). SQLite, which has no network latency, answers each at once.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection, CursorResult, Executable, Row

# The execution option that names the round trip of a statement.
ROUND_TRIP = "forewarn.trip"

Statement = tuple[Executable, Any]  # with its values, or a list of values


class _Counted(Protocol):
    @property
    def rowcount(self) -> int: ...


@dataclass(slots=True)
class RoundTrip:
    """Statements on their way."""

    left: int  # statements that still follow
    until_answered: ExitStack  # closed after the last answer, or when a statement fails
    written: list[_Counted] = field(default_factory=list)  # writes whose answers came with the last one's


def read_at_once(connection: Connection, queries: Sequence[Statement]) -> list[Sequence[Row[Any]]]:
    """Return the rows of each query."""
    results, _ = _execute(connection, queries)
    return [result.all() for result in results]


def write_at_once(connection: Connection, writes: Sequence[Statement]) -> list[int]:
    """Execute writes that return no rows; return how many rows each of them changed."""
    results, trip = _execute(connection, writes)
    counted: Sequence[_Counted] = trip.written or results
    return [each.rowcount for each in counted]


def _execute(
    connection: Connection, statements: Sequence[Statement]
) -> tuple[list[CursorResult[Any]], RoundTrip]:
    with ExitStack() as until_answered:
        trip = RoundTrip(len(statements), until_answered)
        results = []
        for statement, values in statements:
            trip.left -= 1
            results.append(connection.execute(statement, values, execution_options={ROUND_TRIP: trip}))
    return results, trip
