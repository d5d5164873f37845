"""Many rows of one statement: in SQLite each is bound as it is, by its place.

SQLAlchemy makes two dictionaries of every row before it binds it, which takes as long as SQLite takes to
write one to a small table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, CursorResult, Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from forewarn.store.rows.mapping import Columns

# As many as there are statements that write, and sets of columns that they write.
_KEPT = 256


def execute_many(
    connection: Connection,
    statement: Any,
    rows: Sequence[Columns],
    *,
    execution_options: Mapping[str, Any] | None = None,
) -> CursorResult[Any]:
    """Execute a statement that writes for each of some rows, which all have the same columns."""
    if connection.dialect.name != "sqlite" or len(rows) == 1:
        return connection.execute(statement, rows, execution_options=execution_options)
    bound = _bound(statement, tuple(rows[0]), connection.dialect)
    values = list(map(bound.values, rows))
    return connection.exec_driver_sql(bound.text, values, execution_options)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A statement as the database takes it."""

    text: str
    values: Callable[[Columns], tuple[Any, ...]]  # of a row, in the order of the statement


@lru_cache(_KEPT)
def _bound(statement: Any, columns: tuple[str, ...], dialect: Dialect) -> _Bound:
    compiled: SQLCompiler = statement.compile(dialect=dialect, column_keys=columns, for_executemany=True)
    if compiled.insert_prefetch or compiled.update_prefetch:
        raise TypeError(
            f"{statement.table} has columns whose values SQLAlchemy makes: they are not bound here"
        )
    named = [compiled.binds[name] for name in compiled.positiontup or ()]
    fixed = {bind.key: bind.value for bind in named if bind.key not in columns and not bind.required}
    processors = [
        (place, processor)
        for place, bind in enumerate(named)
        if (processor := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
    ]
    keys = [bind.key for bind in named]

    def values(row: Columns) -> tuple[Any, ...]:
        found = [row[key] if key in row else fixed[key] for key in keys]
        for place, process in processors:
            found[place] = process(found[place])
        return tuple(found)

    return _Bound(compiled.string, values)
