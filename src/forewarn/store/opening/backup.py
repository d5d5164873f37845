"""A backup of the store as one SQLite file, made while a server goes on writing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from forewarn.core.errors import Invalid, NotFound
from forewarn.store.opening.appearing import appearing
from forewarn.store.opening.database import (
    LOCK_SECONDS,
    Database,
    create_engines,
    parse_database,
)
from forewarn.store.opening.lock import check_unserved
from forewarn.store.opening.row_copy import ADD_MARK, copy_rows
from forewarn.store.opening.schema import known_schema


def backup(url: str, target: Path, *, new_lineage: str) -> int:
    """Copy a store into a new file, which can be served as it is; return how many webhooks it has.

    It has no sessions of browsers: one that ends later must not be brought back with the backup.

    The copy has a lineage of its own, so that readers of the first store do not take it for the same, and
    knows that it is a backup. Its webhooks are the same: a server of the copy pushes to them too.
    """
    database = parse_database(url)
    with appearing(target) as unfinished:
        if database.file is not None:
            _copy_file(database, database.file, unfinished)
        elif database.embedded:
            raise Invalid(f"{database.name} cannot be backed up")
        else:
            _copy_tables(database, unfinished)
        _mark(unfinished, new_lineage)
        _end_sessions(unfinished)
        return _webhooks_in(unfinished)


def _copy_file(database: Database, source: Path, target: Path) -> None:
    if not source.exists():
        raise NotFound(f"{database.name} does not exist")
    check_unserved(database)
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


def _end_sessions(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        if _has_table(connection, "sessions"):
            connection.execute("DELETE FROM sessions")


def _webhooks_in(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        if not _has_table(connection, "webhooks"):
            return 0
        return int(connection.execute("SELECT count(*) FROM webhooks").fetchone()[0])


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a table is there: an older forewarn's store may not have it."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def _mark(file: Path, lineage: str) -> None:
    """Have the file know that it is a backup, and a store of its own; an older one is given the column."""
    with closing(sqlite3.connect(file)) as connection, connection:
        known = [row[1] for row in connection.execute("PRAGMA table_info(meta)")]
        if "backup_of" not in known:
            connection.execute(ADD_MARK)
        connection.execute(
            "UPDATE meta SET lineage = ?, backup_of = coalesce(backup_of, reached)", (lineage,)
        )
