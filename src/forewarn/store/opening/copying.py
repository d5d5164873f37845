"""Backups of a store as one SQLite file, and copies to another database."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
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
    text,
)

from forewarn.core.errors import Conflict, Invalid, NotFound, Unavailable
from forewarn.store import tables
from forewarn.store.opening import lock
from forewarn.store.opening.database import LOCK_SECONDS, Database, parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.schema import VERSION_TABLE, known_schema, make_schema, revisions
from forewarn.store.opening.sqlite_files import written_atomically

# A copy inserts all rows into an empty database, reads them back and compares them. It copies JSON as text:
# after parsing and writing, the text could differ.
_ROWS_AT_ONCE = 5_000

# Called with the phase ("copied" or "compared"), the rows so far, and all rows.
Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChecksum:
    """The number of rows of a table, and a checksum."""

    rows: int = 0
    sum: int = 0

    def with_row(self, row: Sequence[Any]) -> "TableChecksum":
        """Add a row; the order of rows does not matter, because databases may differ in it."""
        digest = blake2b(repr(tuple(row)).encode(errors="surrogatepass"), digest_size=16).digest()
        return TableChecksum(rows=self.rows + 1, sum=(self.sum + int.from_bytes(digest)) % (1 << 128))


def copy_rows(
    reading: Connection, writing: Connection, *, schema: str, progress: Progress = lambda *_: None
) -> int:
    """Copy a store whose schema is known; return its number of rows.

    Unavailable if the copy differs.
    """
    copied = _create_tables(writing, schema)
    total = sum(reading.scalar(select(func.count()).select_from(table)) or 0 for table in copied)
    done = Counter[str]()

    def report(phase: str, rows: int) -> None:
        done[phase] += rows
        progress(phase, done[phase], total)

    contents = [_copy(table, reading, writing, partial(report, "copied")) for table in copied]
    for table, expected in zip(copied, contents, strict=True):
        arrived = _contents(table, writing, partial(report, "compared"))
        if arrived != expected:
            raise Unavailable(
                f"the copy of table {table.name} has {arrived.rows} of {expected.rows} rows or differs: "
                "nothing was copied; try again, and if it happens again check disk and memory"
            )
    return done["copied"]


def _create_tables(writing: Connection, schema: str) -> Sequence[Table]:
    """Create the tables of a schema, and return them in the order in which to copy them."""
    make_schema(writing, schema)
    if schema == revisions()[-1]:
        return tables.metadata.sorted_tables
    about, older = inspect(writing), MetaData()
    return [
        Table(name, older, *(Column(each["name"], each["type"]) for each in about.get_columns(name)))
        for name in about.get_table_names()
        if name != VERSION_TABLE
    ]


def _copy(
    table: Table, reading: Connection, writing: Connection, report: Callable[[int], None]
) -> TableChecksum:
    into = _insertion(table, writing)

    def insert_rows(rows: Sequence[Any]) -> None:
        writing.execute(into, [_values(table, row) for row in rows])

    return _contents(table, reading, report, insert_rows)


def _contents(
    table: Table,
    connection: Connection,
    report: Callable[[int], None],
    use: Callable[[Sequence[Any]], None] = lambda _: None,
) -> TableChecksum:
    contents = TableChecksum()
    columns = [cast(each, Text) if _is_json(each) else each for each in table.columns]
    found = connection.execute(select(*columns), execution_options={"yield_per": _ROWS_AT_ONCE})
    for rows in found.partitions():
        for row in rows:
            contents = contents.with_row(row)
        use(rows)
        report(len(rows))
    return contents


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


# Backups, while a server may be running


def backup(url: str, target: Path, *, new_lineage: str) -> int:
    """Copy a store into a new SQLite file that a server can use; return its number of webhooks.

    The copy has no browser sessions: a restored backup must not revive a session that has ended
    since. It has a lineage of its own, so that readers of the original do not take it for the same store. It
    keeps the webhooks, so a server of the copy calls them too.
    """
    database = parse_database(url)
    with written_atomically(target) as unfinished:
        if database.file is not None:
            _copy_file(database, database.file, unfinished)
        elif database.embedded:
            raise Invalid(f"{database.name} cannot be backed up")
        else:
            _copy_tables(database, unfinished)
        return _mark_as_backup(unfinished, new_lineage)


def _copy_file(database: Database, source: Path, target: Path) -> None:
    if not source.exists():
        raise NotFound(f"{database.name} does not exist")
    lock.check_unserved(database)
    with closing(sqlite3.connect(source, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _copy_tables(database: Database, target: Path) -> None:
    source, copy = create_engines(database), create_engines(parse_database(f"sqlite:///{target.absolute()}"))
    try:
        with source.reading.connect() as reading, copy.writing.begin() as writing:
            copy_rows(reading, writing, schema=known_schema(reading, name=database.name))
    finally:
        source.dispose()
        copy.dispose()


def _mark_as_backup(file: Path, lineage: str) -> int:
    """Mark a copy as a backup, remove its sessions, and return its number of webhooks."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE meta SET lineage = ?, backup_of = coalesce(backup_of, reached)", (lineage,)
        )
        connection.execute("DELETE FROM sessions")
        return int(connection.execute("SELECT count(*) FROM webhooks").fetchone()[0])


# Copies, while no server is running


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySummary:
    """The result of a copy."""

    source: str
    target: str
    rows: int


def copy(source: str, target: str, *, new_lineage: str, progress: Progress = lambda *_: None) -> CopySummary:
    """Copy a store into an empty database, compare the copy, and give it a lineage of its own.

    This takes the locks of both databases, because the copy would lack the later changes of a running server.
    The schema stays the same; a server of the copy migrates it. A failure leaves the target unchanged.
    """
    here, there = parse_database(source), parse_database(target)
    _check(here)
    with lock.hold(source), _beginning(here, reading=True) as reading:
        schema = known_schema(reading, name=here.name)
        with _writing(there) as writing:
            rows = copy_rows(reading, writing, schema=schema, progress=progress)
            writing.execute(text("UPDATE meta SET lineage = :lineage"), {"lineage": new_lineage})
            if not there.embedded:
                _analyze(writing)
    return CopySummary(source=here.name, target=there.name, rows=rows)


def _analyze(connection: Connection) -> None:
    """Update the statistics: until PostgreSQL does so itself, its plans would be poor."""
    quoted = connection.dialect.identifier_preparer.quote
    connection.execute(text(f"ANALYZE {', '.join(map(quoted, inspect(connection).get_table_names()))}"))


def _check(source: Database) -> None:
    if source.embedded and source.file is None:
        raise Invalid(f"{source.name} cannot be copied")
    if source.file is not None and not source.file.exists():
        raise NotFound(f"{source.name} does not exist")


@contextmanager
def _beginning(database: Database, *, reading: bool = False) -> Iterator[Connection]:
    """Open a transaction, and close every connection afterwards."""
    engines = create_engines(database)
    try:
        with (engines.reading if reading else engines.writing).begin() as connection:
            yield connection
    finally:
        engines.dispose()


@contextmanager
def _writing(target: Database) -> Iterator[Connection]:
    """Open a transaction on an empty database; it commits everything or nothing."""
    if target.file is not None:
        with (
            written_atomically(target.file) as unfinished,
            _beginning(parse_database(f"sqlite:///{unfinished}")) as new,
        ):
            yield new
        return
    if target.embedded:
        raise Invalid(f"{target.name} ends with this command: copy to a file or to PostgreSQL")
    with lock.hold(target.url.render_as_string(hide_password=False)), _beginning(target) as connection:
        found = inspect(connection).get_table_names()
        if found:
            raise Conflict(f"{target.name} is not empty (table {min(found)}): copy to an empty database")
        yield connection
