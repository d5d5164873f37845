"""The schema of a database: made if there is none, brought up to date if it is older, refused if newer.

Alembic is loaded only to bring an older one up to date: that takes longer than to load the rest of the store.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    literal,
    select,
    text,
)

from forewarn.core.errors import Conflict, Invalid
from forewarn.store import tables
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import check_unserved

if TYPE_CHECKING:
    from alembic.config import Config

# Its own name, so that another program's Alembic in the same database is not mistaken for ours.
VERSION_TABLE = "forewarn_schema"
MIGRATIONS = Path(__file__).parent.parent / "migrations"
_MIGRATION_LOCK = 0x666F7265_77610001  # any constant will do that no other program is likely to use

# As Alembic makes it.
_version = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


def migrate(connection: Connection, *, name: str) -> None:
    """Bring the schema up to date, within the connection's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    current, known = revision(connection), revisions()
    if current == known[-1]:
        return
    if current is None:
        if found := inspect(connection).get_table_names():
            raise Invalid(f"{name} holds something else (table {min(found)}): use another --database")
        _make(connection)
        return
    if current not in known:
        raise _newer(name, current)
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def make_schema(connection: Connection, schema: str) -> None:
    """Make in an empty database the tables of a schema, this forewarn's or an older one."""
    if schema == revisions()[-1]:
        _make(connection)
        return
    from alembic import command

    command.upgrade(alembic_config(connection), schema)


def known_schema(connection: Connection, *, name: str) -> str:
    """Return which schema a store has; Conflict if there is no store, or it is a newer forewarn's."""
    found = revision(connection)
    if found is None:
        raise Conflict(f"{name} has schema none: there is no store in it")
    if found not in revisions():
        raise _newer(name, found)
    return found


def _newer(name: str, found: str) -> Conflict:
    return Conflict(
        f"{name} was written by a newer forewarn (schema {found}, this one knows up to {revisions()[-1]}): "
        "upgrade forewarn, or restore a backup"
    )


def check_schema(connection: Connection, *, name: str) -> None:
    """Refuse a schema that is not this forewarn's, where it may not be changed."""
    found, expected = revision(connection), revisions()[-1]
    if found != expected:
        raise Conflict(
            f"{name} has schema {found or 'none'}, this forewarn knows {expected}: "
            f"use the forewarn that serves it"
        )


def revisions() -> list[str]:
    """Return the names of all schemas that this forewarn knows, the newest last: files are named by them."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return sorted(file.name.partition("_")[0] for file in files)


def revision(connection: Connection) -> str | None:
    """Return the name of the schema that a database has; None if it has none yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_version.select()).scalar()


def alembic_config(connection: Connection) -> "Config":
    """Return where the migrations are, and on which connection they run."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _make(connection: Connection) -> None:
    """Make in an empty database what all migrations would lead to."""
    tables.metadata.create_all(connection, checkfirst=False)
    _version.create(connection)
    connection.execute(_version.insert(), {"version_num": revisions()[-1]})


# What a database holds, whatever its schema; nothing is made and nothing changed


def is_store(url: str) -> bool:
    """Return whether there is a store in a database."""
    return _probe(url, lambda connection: revision(connection) is not None)


def any_token(url: str) -> bool:
    """Return whether a token was ever made in a database."""
    return _probe(url, _has_token)


def _has_token(connection: Connection) -> bool:
    known = inspect(connection).has_table(tables.tokens.name)
    return (
        known
        and connection.execute(select(literal(1)).select_from(tables.tokens).limit(1)).first() is not None
    )


def _probe(url: str, holds: Callable[[Connection], bool]) -> bool:
    database = parse_database(url)
    if database.embedded and (database.file is None or not database.file.exists()):
        return False
    check_unserved(database)
    engines = create_engines(database)
    try:
        with engines.reading.begin() as connection:
            return holds(connection)
    finally:
        engines.dispose()
