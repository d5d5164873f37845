"""Statements that need not wait for the answers to those before them: a database is waited for once for all.

Each is executed by SQLAlchemy as any other is. PostgreSQL is sent all of them before the first is answered
(`opening/pipelined_postgresql.py`); SQLite, which nobody waits for, answers each as it comes.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection, CursorResult, Executable, Row

# An execution option: the trip that a statement is part of.
TRIP = "forewarn.trip"

Statement = tuple[Executable, Any]  # with its values, or a list of them


class _Counted(Protocol):
    @property
    def rowcount(self) -> int: ...


@dataclass(slots=True)
class Trip:
    """Statements on their way, and what is to be closed once they are answered, or when one fails."""

    left: int  # statements that come after the one that is executed
    until_answered: ExitStack
    written: list[_Counted] = field(default_factory=list)  # those whose answers came with the last one's


def read_at_once(connection: Connection, queries: Sequence[Statement]) -> list[Sequence[Row[Any]]]:
    """Return the rows of each of several queries."""
    results, _ = _at_once(connection, queries)
    return [result.all() for result in results]


def write_at_once(connection: Connection, writes: Sequence[Statement]) -> list[int]:
    """Execute several statements that write rows and return none; return how many each of them changed."""
    results, trip = _at_once(connection, writes)
    counted: Sequence[_Counted] = trip.written or results
    return [each.rowcount for each in counted]


def _at_once(connection: Connection, statements: Sequence[Statement]) -> tuple[list[CursorResult[Any]], Trip]:
    with ExitStack() as until_answered:
        trip = Trip(len(statements), until_answered)
        options = {TRIP: trip}
        results = []
        for statement, values in statements:
            trip.left -= 1
            results.append(connection.execute(statement, values, execution_options=options))
    return results, trip
