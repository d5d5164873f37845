"""The schema of a database: made if there is none, brought up to date if it is older, refused if newer."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, inspect, text

from forewarn.core.errors import Conflict, Invalid

# Its own name, so that another program's Alembic in the same database is not mistaken for ours.
VERSION_TABLE = "forewarn_schema"
_MIGRATIONS = Path(__file__).parent.parent / "migrations"
_MIGRATION_LOCK = 0x666F7265_77610001  # any constant will do that no other program is likely to use


def migrate(connection: Connection, *, name: str) -> None:
    """Bring the schema up to date, within the connection's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    config = alembic_config(connection)
    script = ScriptDirectory.from_config(config)
    current, newest = revision(connection), script.get_current_head()
    if current == newest:
        return
    if current is None:
        _refuse_a_stranger(connection, name)
    elif not _known(script, current):
        raise Conflict(
            f"{name} was written by a newer forewarn (schema {current}, this one knows up to {newest}): "
            f"upgrade forewarn, or restore a backup"
        )
    command.upgrade(config, "head")


def check_schema(connection: Connection, *, name: str) -> None:
    """Refuse a schema that is not this forewarn's; for those who may not change it."""
    found, expected = revision(connection), newest_revision()
    if found != expected:
        raise Conflict(
            f"{name} has schema {found or 'none'}, this forewarn knows {expected}: "
            f"use the forewarn that serves it"
        )


def newest_revision() -> str | None:
    """Name the newest schema that this forewarn knows."""
    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()


def revision(connection: Connection) -> str | None:
    """Name the schema that a database has; None if it has none yet."""
    return MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()


def alembic_config(connection: Connection) -> Config:
    """Say where the migrations are, and on which connection they run."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _known(script: ScriptDirectory, name: str) -> bool:
    try:
        return script.get_revision(name) is not None
    except CommandError:
        return False


def _refuse_a_stranger(connection: Connection, name: str) -> None:
    found = set(inspect(connection).get_table_names())
    if found and VERSION_TABLE not in found:
        raise Invalid(f"{name} holds something else (table {min(found)}): use another --database")
