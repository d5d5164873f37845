"""A copy of the store as one SQLite file, made while a server goes on writing."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import insert, select

from forewarn.core.errors import Conflict, Invalid, NotFound, Unavailable
from forewarn.store import tables
from forewarn.store.opening.database import (
    LOCK_SECONDS,
    Database,
    create_engines,
    parse_database,
)
from forewarn.store.opening.private_files import create_private
from forewarn.store.opening.schema import check_schema, migrate

_ROWS_AT_ONCE = 5_000


def backup(url: str, target: Path, *, new_lineage: str) -> int:
    """Copy a store into a new file, which can be served as it is; return how many webhooks it has.

    The copy has a lineage of its own, so that readers of the first store do not take it for the same. Its
    webhooks are the same: a server of the copy pushes to them too.
    """
    database = parse_database(url)
    if target.exists():
        raise Conflict(f"{target} exists already: give another name")
    with _appearing(target) as unfinished:
        if database.file is not None:
            _copy_file(database, database.file, unfinished)
        elif database.embedded:
            raise Invalid(f"{database.name} cannot be backed up")
        else:
            _copy_tables(database, unfinished)
        _set_lineage(unfinished, new_lineage)
        return _webhooks_in(unfinished)


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """Give a name to write to; the file appears under its own name when it is whole and on the disk."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        create_private(unfinished)
        yield unfinished
        _sync(unfinished)
        if target.exists():
            raise Conflict(f"{target} exists already: give another name")
        unfinished.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise Unavailable(f"{target} cannot be written: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"the copy to {target} has failed: {error}") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_file(database: Database, source: Path, target: Path) -> None:
    if not source.exists():
        raise NotFound(f"{database.name} does not exist")
    with closing(sqlite3.connect(source, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _copy_tables(database: Database, target: Path) -> None:
    source, copy = create_engines(database), create_engines(parse_database(f"sqlite:///{target.absolute()}"))
    try:
        with source.reading.connect() as reading, copy.writing.begin() as writing:
            check_schema(reading, name=database.name)
            migrate(writing, name=str(target))
            for table in tables.metadata.sorted_tables:
                found = reading.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(table))
                for rows in found.mappings().partitions():
                    writing.execute(insert(table), [dict(row) for row in rows])
    finally:
        source.dispose()
        copy.dispose()


def _webhooks_in(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        # An older forewarn's store may have no such table.
        there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'webhooks'").fetchone()
        return int(connection.execute("SELECT count(*) FROM webhooks").fetchone()[0]) if there else 0


def _set_lineage(file: Path, lineage: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE meta SET lineage = ?", (lineage,))
