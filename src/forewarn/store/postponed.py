"""Writes that nobody waits for: kept until the database is asked something, then written table by table.

Jobs that are saved together write to the same tables, and many rows of a table cost little more than one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection

from forewarn.core.errors import Conflict
from forewarn.store.round_trips import write_at_once
from forewarn.store.rows.mapping import Columns

OPEN = "forewarn.joint"  # in the `info` of a connection: what it is used for


class Postponing(Protocol):
    """What a connection is used for, if it postpones writes."""

    postpones: bool

    def postpone(self, statement: Any, rows: Sequence[Columns], *, changing: bool) -> None:
        """Have rows written before the database is asked anything else, or when all is saved."""
        ...


def postponed(
    connection: Connection, statement: Any, rows: Sequence[Columns], *, changing: bool = False
) -> bool:
    """Postpone the writing of rows where that is done; return whether it is."""
    using: Postponing | None = connection.info.get(OPEN)
    if using is None or not using.postpones:
        return False
    using.postpone(statement, rows, changing=changing)
    return True


@dataclass(frozen=True, slots=True)
class _Rows:
    statement: Any
    keys: frozenset[str]
    rows: list[Columns]
    changing: bool  # whether each row must change one


@dataclass(slots=True)
class Postponed:
    """Rows to be written: those of one statement in their order, statements in that of their first rows.

    So it takes only statements whose rows can come together: none that deletes is among them.
    """

    _all: list[_Rows] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, statement: Any, rows: Sequence[Columns], *, changing: bool = False) -> None:
        """Add rows of a statement; those of an update must each change a row, or all is a Conflict."""
        keys = frozenset(rows[0])
        last = next((each for each in reversed(self._all) if each.statement is statement), None)
        if last is None or last.keys != keys:
            last = _Rows(statement, keys, [], changing)
            self._all.append(last)
        last.rows.extend(rows)

    def add_all(self, others: "Postponed") -> None:
        """Add what comes after this."""
        for each in others._all:
            self.add(each.statement, each.rows, changing=each.changing)

    def write(self, connection: Connection) -> None:
        """Write all of it, which is then not postponed any more."""
        postponed, self._all = self._all, []
        counts = write_at_once(connection, [(each.statement, each.rows) for each in postponed])
        if any(
            each.changing and count != len(each.rows) for each, count in zip(postponed, counts, strict=True)
        ):
            raise Conflict("a group was changed by somebody else: try again")
