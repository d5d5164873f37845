"""All rows of a store, brought into an empty database and compared with what has arrived there.

JSON is brought over as the text that it is: read and written again it could become another.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    bindparam,
    cast,
    func,
    insert,
    inspect,
    select,
)

from forewarn.core.errors import Unavailable
from forewarn.store import tables
from forewarn.store.opening.schema import VERSION_TABLE, make_schema, revisions

_ROWS_AT_ONCE = 5_000

# Called with what is done to how many rows, of how many.
Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """How many rows a table has, and a sum over all of them that hardly two contents share."""

    rows: int = 0
    sum: int = 0

    def with_row(self, row: Sequence[Any]) -> "Contents":
        """Add a row; the order of rows does not count, for databases need not agree on one."""
        digest = blake2b(repr(tuple(row)).encode(errors="surrogatepass"), digest_size=16).digest()
        return Contents(rows=self.rows + 1, sum=(self.sum + int.from_bytes(digest)) % (1 << 128))


def copy_rows(
    reading: Connection, writing: Connection, *, schema: str, progress: Progress = lambda *_: None
) -> int:
    """Copy a store of a schema that is known here; return how many rows it has.

    Unavailable if what has arrived is not what was sent.
    """
    copied = _made_tables(writing, schema)
    total = sum(reading.scalar(select(func.count()).select_from(table)) or 0 for table in copied)
    sent = _Count(lambda rows: progress("copied", rows, total))
    contents = [_copy(table, reading, writing, sent) for table in copied]
    found = _Count(lambda rows: progress("compared", rows, total))
    for table, expected in zip(copied, contents, strict=True):
        arrived = _contents(table, writing, found)
        if arrived != expected:
            raise Unavailable(
                f"table {table.name} has arrived with {arrived.rows} of {expected.rows} rows, "
                "or with others: nothing is copied; try again, and check disk and memory if it stays so"
            )
    return sent.rows


class _Count:
    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self.rows = 0

    def add(self, rows: int) -> None:
        self.rows += rows
        self._tell(self.rows)


def _made_tables(writing: Connection, schema: str) -> Sequence[Table]:
    """Make the tables of a schema, and return them in the order in which they are filled."""
    make_schema(writing, schema)
    if schema == revisions()[-1]:
        return tables.metadata.sorted_tables
    about, older = inspect(writing), MetaData()
    return [
        Table(name, older, *(Column(each["name"], each["type"]) for each in about.get_columns(name)))
        for name in about.get_table_names()
        if name != VERSION_TABLE
    ]


def _copy(table: Table, reading: Connection, writing: Connection, count: _Count) -> Contents:
    contents = Contents()
    into = _insertion(table, writing)
    for batch in _batches(table, reading):
        for row in batch:
            contents = contents.with_row(row)
        writing.execute(into, [_values(table, row) for row in batch])
        count.add(len(batch))
    return contents


def _contents(table: Table, connection: Connection, count: _Count) -> Contents:
    contents = Contents()
    for batch in _batches(table, connection):
        for row in batch:
            contents = contents.with_row(row)
        count.add(len(batch))
    return contents


def _batches(table: Table, connection: Connection) -> Iterator[Sequence[Any]]:
    columns = [cast(each, Text) if _is_json(each) else each for each in table.columns]
    at_once = {"yield_per": _ROWS_AT_ONCE}
    return connection.execute(select(*columns), execution_options=at_once).partitions()


def _insertion(table: Table, connection: Connection) -> Any:
    def bound(column: Column[Any]) -> Any:
        if not _is_json(column):
            return bindparam(f"new_{column.name}", type_=column.type)
        given = bindparam(f"new_{column.name}", type_=Text())
        return cast(given, JSON) if connection.dialect.name == "postgresql" else given

    return insert(table).values({column.name: bound(column) for column in table.columns})


def _values(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    return {f"new_{column.name}": value for column, value in zip(table.columns, row, strict=True)}


def _is_json(column: Column[Any]) -> bool:
    return isinstance(column.type, JSON)
