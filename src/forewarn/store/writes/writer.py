"""Writing rows: at once, or postponed and then written table by table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, delete

from forewarn.core.errors import Conflict
from forewarn.store.key_lists import chunks, one_of
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.round_trips import write_at_once
from forewarn.store.rows.mapping import Columns, Mapped

Value = TypeVar("Value")


def put(
    tx: OpenTransaction, mapped: Mapped[Value], values: Iterable[Value], *, keep: tuple[str, ...] = ()
) -> None:
    """Insert values or replace them; see `put_rows`."""
    put_rows(tx, mapped.table, [mapped.write(value) for value in values], keep=keep)


def put_rows(
    tx: OpenTransaction, table: Table, rows: Sequence[Columns], *, keep: tuple[str, ...] = ()
) -> None:
    """Insert rows by primary key or replace them; existing rows keep the columns named in `keep`."""
    if rows:
        write_rows(tx, _upsert(tx.connection.dialect.name, table, keep=keep), rows)


def add_rows(tx: OpenTransaction, table: Table, rows: Sequence[Columns]) -> None:
    """Insert rows by primary key, or add their numbers to existing rows."""
    if rows:
        write_rows(tx, _adding(tx.connection.dialect.name, table), rows)


def write_rows(tx: OpenTransaction, statement: Any, rows: Sequence[Columns]) -> None:
    """Write rows now, or before the next statement if the batch postpones writes."""
    if tx.batch.postpone is not None:
        tx.batch.postpone(statement, rows)
    else:
        tx.connection.execute(statement, rows)


def delete_rows(tx: OpenTransaction, column: Column[Any], keys: Iterable[str | int]) -> None:
    """Delete the rows that have one of these keys in a column; without keys no statement runs."""
    for chunk in chunks(keys):
        tx.connection.execute(delete(column.table).where(one_of(column, chunk)))


def insertion(dialect: str, table: Table) -> Any:
    """Return an INSERT of the dialect, which supports ON CONFLICT."""
    # SQLAlchemy has loaded the dialect in use; importing the other one as well would slow the start.
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
    """Return the names of the columns of the primary key, and of the others."""
    keys = [column.name for column in table.primary_key]
    return keys, [column.name for column in table.columns if column.name not in keys]


# Jobs of a batch write to the same tables, and many rows of one table cost little more than one row. So a
# prefetching batch postpones each write whose result no job needs until the next statement.


@dataclass(frozen=True, slots=True)
class _Rows:
    statement: Any
    keys: frozenset[str]
    rows: list[Columns]


@dataclass(slots=True)
class PostponedWrites:
    """Rows to write, grouped by statement; the statements are in the order of their first rows.

    Never add a DELETE: the grouping changes the order of writes.
    """

    _all: list[_Rows] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, statement: Any, rows: Sequence[Columns]) -> None:
        """Add rows of a statement."""
        keys = frozenset(rows[0])
        last = next((each for each in reversed(self._all) if each.statement is statement), None)
        if last is None or last.keys != keys:
            last = _Rows(statement, keys, [])
            self._all.append(last)
        last.rows.extend(rows)

    def add_all(self, others: "PostponedWrites") -> None:
        """Add later writes."""
        for each in others._all:
            self.add(each.statement, each.rows)

    def write(self, connection: Connection) -> None:
        """Write all rows; Conflict if a compare-and-set (`must_match`) matched fewer rows than it has."""
        postponed, self._all = self._all, []
        counts = write_at_once(connection, [(each.statement, each.rows) for each in postponed])
        for each, count in zip(postponed, counts, strict=True):
            if count != len(each.rows) and each.statement.get_execution_options().get(MUST_MATCH):
                raise Conflict("another call changed a group: try again")


# An execution option of compare-and-set statements: each row must change a row of the table.
MUST_MATCH = "forewarn.must_match"
