"""Writing rows: they are inserted, or do something else where there is one already."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, delete

from forewarn.store.key_lists import one_of
from forewarn.store.many_rows import execute_many
from forewarn.store.postponed import postponed
from forewarn.store.reads.reader import chunks
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
        execute_many(connection, statement, rows)


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
