"""A store in another place: a backup of it as one SQLite file, or all of it moved to another database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.store.opening import lock
from forewarn.store.opening.database import LOCK_SECONDS, Database, parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.row_copy import Progress, copy_rows
from forewarn.store.opening.schema import known_schema
from forewarn.store.opening.sqlite_files import appearing

# Backups, made while a server goes on writing


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


def _become_backup(file: Path, lineage: str) -> int:
    """Mark a copy as a backup and a store of its own, without sessions; return how many webhooks it has."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE meta SET lineage = ?, backup_of = coalesce(backup_of, reached)", (lineage,)
        )
        connection.execute("DELETE FROM sessions")
        return int(connection.execute("SELECT count(*) FROM webhooks").fetchone()[0])


# Copies, while no server runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied, and from where to where."""

    source: str
    target: str
    rows: int


def copy(source: str, target: str, *, new_lineage: str, progress: Progress = lambda *_: None) -> Copied:
    """Copy a store into an empty database, compare all of it, and give the copy a lineage of its own.

    No server may run on either meanwhile: what it saved later would be missing. The schema stays as it is;
    a server of the copy brings it up to date. What fails leaves the target as it was.
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
    return Copied(source=here.name, target=there.name, rows=rows)


def _analyze(connection: Connection) -> None:
    """Have PostgreSQL look at what it was given: by itself it would plan without that for a while."""
    quoted = connection.dialect.identifier_preparer.quote
    connection.execute(text(f"ANALYZE {', '.join(map(quoted, inspect(connection).get_table_names()))}"))


def _check(source: Database) -> None:
    if source.embedded and source.file is None:
        raise Invalid(f"{source.name} cannot be copied")
    if source.file is not None and not source.file.exists():
        raise NotFound(f"{source.name} does not exist")


@contextmanager
def _beginning(database: Database, *, reading: bool = False) -> Iterator[Connection]:
    """Give a transaction on a database of which nothing stays open."""
    engines = create_engines(database)
    try:
        with (engines.reading if reading else engines.writing).begin() as connection:
            yield connection
    finally:
        engines.dispose()


@contextmanager
def _writing(target: Database) -> Iterator[Connection]:
    """Give a transaction on an empty database: all of it is there afterwards, or nothing."""
    if target.file is not None:
        with (
            appearing(target.file) as unfinished,
            _beginning(parse_database(f"sqlite:///{unfinished}")) as new,
        ):
            yield new
        return
    if target.embedded:
        raise Invalid(f"{target.name} would be gone at once: copy to a file, or to PostgreSQL")
    with lock.hold(target.url.render_as_string(hide_password=False)), _beginning(target) as connection:
        found = inspect(connection).get_table_names()
        if found:
            raise Conflict(f"{target.name} is not empty (table {min(found)}): copy to an empty database")
        yield connection
