"""The statements that both databases have and standard SQL has not: insert, or do something else instead."""

from functools import cache
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERT = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


@cache
def upsert(dialect: str, table: Table, *, keep: tuple[str, ...] = ()) -> Any:
    """Make the statement that inserts rows by primary key or replaces them, but keeps some columns."""
    statement: Any = _INSERT[dialect](table)
    keys = [column.name for column in table.primary_key]
    replaced = [column.name for column in table.columns if column.name not in (*keys, *keep)]
    if not replaced:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(
        index_elements=keys, set_={name: statement.excluded[name] for name in replaced}
    )


@cache
def insert_new(dialect: str, table: Table) -> Any:
    """Make the statement that inserts rows by primary key, and leaves those alone that are there."""
    statement: Any = _INSERT[dialect](table)
    return statement.on_conflict_do_nothing()


@cache
def adding(dialect: str, table: Table) -> Any:
    """Make the statement that inserts rows by primary key, or adds their numbers to what is there."""
    statement: Any = _INSERT[dialect](table)
    keys = [column.name for column in table.primary_key]
    sums = {
        column.name: column + statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=sums)
