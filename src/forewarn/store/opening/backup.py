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
from forewarn.store.opening.row_copy import copy_rows
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
        return _become_backup(unfinished, new_lineage)


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


def _become_backup(file: Path, lineage: str) -> int:
    """Mark a copy as a backup and a store of its own, without sessions; return how many webhooks it has."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE meta SET lineage = ?, backup_of = coalesce(backup_of, reached)", (lineage,)
        )
        connection.execute("DELETE FROM sessions")
        return int(connection.execute("SELECT count(*) FROM webhooks").fetchone()[0])
