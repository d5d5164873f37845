"""Writing rows: at once, or postponed and then written table by table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeVar

from sqlalchemy import Column, Connection, Table, delete

from forewarn.core.errors import Conflict
from forewarn.store.key_lists import one_of
from forewarn.store.reads.reader import chunks
from forewarn.store.round_trips import write_at_once
from forewarn.store.rows.mapping import Columns, Mapped

Value = TypeVar("Value")


def put(
    connection: Connection, mapped: Mapped[Value], values: Iterable[Value], *, keep: tuple[str, ...] = ()
) -> None:
    """Insert values or replace them; see `put_rows`."""
    put_rows(connection, mapped.table, [mapped.write(value) for value in values], keep=keep)


def put_rows(
    connection: Connection, table: Table, rows: Sequence[Columns], *, keep: tuple[str, ...] = ()
) -> None:
    """Insert rows by primary key or replace them, but keep what known ones have in some columns."""
    if rows:
        write_rows(connection, _upsert(connection.dialect.name, table, keep=keep), rows)


def add_rows(connection: Connection, table: Table, rows: Sequence[Columns]) -> None:
    """Insert rows by primary key, or add their numbers to what known ones have."""
    if rows:
        write_rows(connection, _adding(connection.dialect.name, table), rows)


def write_rows(connection: Connection, statement: Any, rows: Sequence[Columns]) -> None:
    """Write rows, perhaps later: before the database is asked anything else."""
    if not postponed(connection, statement, rows):
        connection.execute(statement, rows)


def delete_rows(connection: Connection, column: Column[Any], keys: Iterable[str | int]) -> None:
    """Delete the rows with some keys in a column; no keys, no statement."""
    for chunk in chunks(keys):
        connection.execute(delete(column.table).where(one_of(column, chunk)))


def insertion(dialect: str, table: Table) -> Any:
    """Insert into a table, by a statement that can do something else where a row is there already."""
    # SQLAlchemy loads the dialect that is used; the other would only be waited for.
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


@cache
def _upsert(dialect: str, table: Table, *, keep: tuple[str, ...]) -> Any:
    statement = insertion(dialect, table)
    keys, others = _columns(table)
    replaced = [name for name in others if name not in keep]
    if not replaced:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(
        index_elements=keys, set_={name: statement.excluded[name] for name in replaced}
    )


@cache
def _adding(dialect: str, table: Table) -> Any:
    statement = insertion(dialect, table)
    keys, others = _columns(table)
    return statement.on_conflict_do_update(
        index_elements=keys, set_={name: table.c[name] + statement.excluded[name] for name in others}
    )


def _columns(table: Table) -> tuple[list[str], list[str]]:
    """Name the columns of the primary key, and the others."""
    keys = [column.name for column in table.primary_key]
    return keys, [column.name for column in table.columns if column.name not in keys]


# Jobs that are saved together write to the same tables, and many rows of a table cost little more than one.
# So a write whose result is not needed is kept until the database is asked something.

OPEN = "forewarn.batch"  # in the `info` of a connection: what it is used for


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
