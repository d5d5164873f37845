"""A store moved to another database: SQLite or PostgreSQL, whichever way."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, inspect, text

from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.store.opening import lock
from forewarn.store.opening.appearing import appearing
from forewarn.store.opening.database import Database, create_engines, parse_database
from forewarn.store.opening.row_copy import Progress, copy_rows
from forewarn.store.opening.schema import known_schema


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
