"""The schema of a database: created in an empty one, migrated from an older one, refused if newer.

Alembic is imported only to migrate, because the import takes longer than that of the rest of the store.
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

# A name of its own: another program in the database may use Alembic too.
VERSION_TABLE = "forewarn_schema"
MIGRATIONS = Path(__file__).parent.parent / "migrations"
_MIGRATION_LOCK = 0x666F7265_77610001  # an arbitrary constant that no other program is likely to use

# As Alembic creates it.
_version = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


def migrate(connection: Connection, *, name: str) -> None:
    """Migrate to the current schema, in the transaction of the connection."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    current, known = revision(connection), revisions()
    if current == known[-1]:
        return
    if current is None:
        if found := inspect(connection).get_table_names():
            raise Invalid(f"{name} belongs to another program (table {min(found)}): use another --database")
        _make(connection)
        return
    if current not in known:
        raise _newer(name, current)
    _upgrade(connection, "head")


def make_schema(connection: Connection, schema: str) -> None:
    """Create the tables of the current schema or of an older one in an empty database."""
    if schema == revisions()[-1]:
        _make(connection)
    else:
        _upgrade(connection, schema)


def _upgrade(connection: Connection, schema: str) -> None:
    from alembic import command

    command.upgrade(alembic_config(connection), schema)


def known_schema(connection: Connection, *, name: str) -> str:
    """Return the schema of a store; Conflict if there is no store, or if the schema is newer."""
    found = revision(connection)
    if found is None:
        raise Conflict(f"{name} has no schema: there is no store in it")
    if found not in revisions():
        raise _newer(name, found)
    return found


def _newer(name: str, found: str) -> Conflict:
    return Conflict(
        f"{name} was written by a newer forewarn (schema {found}, this one knows up to {revisions()[-1]}): "
        "upgrade forewarn, or restore a backup"
    )


def check_schema(connection: Connection, *, name: str) -> None:
    """Refuse every schema but the current one; for programs that must not migrate."""
    found, expected = revision(connection), revisions()[-1]
    if found != expected:
        raise Conflict(
            f"{name} has schema {found or 'none'}, but this version of forewarn needs {expected}: "
            "use the version of the server"
        )


def revisions() -> list[str]:
    """Return the names of all known schemas, newest last, from the names of the migration files."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return sorted(file.name.partition("_")[0] for file in files)


def revision(connection: Connection) -> str | None:
    """Return the name of the schema of a database; None if it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_version.select()).scalar()


def alembic_config(connection: Connection) -> "Config":
    """Return the configuration of Alembic for a connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _make(connection: Connection) -> None:
    """Create the current schema in an empty database, without the migrations."""
    tables.metadata.create_all(connection, checkfirst=False)
    _version.create(connection)
    connection.execute(_version.insert(), {"version_num": revisions()[-1]})


# Checks that work with any schema and change nothing


def is_store(url: str) -> bool:
    """Return whether there is a store in a database."""
    return _probe(url, lambda connection: revision(connection) is not None)


def any_token(url: str) -> bool:
    """Return whether a database has ever had a token."""
    first = select(literal(1)).select_from(tables.tokens).limit(1)
    return _probe(
        url,
        lambda connection: (
            inspect(connection).has_table(tables.tokens.name) and connection.scalar(first) is not None
        ),
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
