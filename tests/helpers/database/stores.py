"""Fast stores for tests: migrated once, without fsync, with each statement compiled once."""

import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Pool, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.schema import migrate

# Only tests with the fixture `with_fsync` need data to survive a power cut.
fsync = False


def sqlite_url(folder: Path) -> str:
    """Return the URL of a store in a folder.

    If it does not exist, create it empty and with all migrations.
    """
    file = folder / "forewarn.db"
    make_sqlite(file)
    return f"sqlite:///{file}"


_prepared: dict[str, bytes] = {}


def prepared_sqlite(folder: Path, name: str, prepare: Callable[[str], None]) -> str:
    """Return the URL of a copy of a store. `prepare` fills the original once, given its URL."""
    if name not in _prepared:
        with tempfile.TemporaryDirectory() as apart:
            prepare(sqlite_url(Path(apart)))
            _prepared[name] = (Path(apart) / "forewarn.db").read_bytes()
    file = folder / "forewarn.db"
    file.write_bytes(_prepared[name])
    return f"sqlite:///{file}"


def make_sqlite(file: Path) -> None:
    """Create an SQLite database with empty tables, if the file does not exist."""
    if not file.exists():
        file.write_bytes(_migrated_sqlite())


@cache
def _migrated_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "template.db"
        make_tables(f"sqlite:///{file}")
        return file.read_bytes()


def make_tables(url: str) -> None:
    """Migrate an empty database. Like a new store, it has no lineage until it is opened."""
    database = parse_database(url)
    engines = create_engines(database)
    with engines.writing.begin() as connection:
        migrate(connection, name=database.name)
    engines.dispose()


class _Compiled(dict[Any, Any]):
    """Compiled statements by text and kind of database, shared by all engines.

    Normally each engine has its own cache, and most tests would compile every statement for a few uses.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


_compiled = _Compiled()


def quicken() -> None:
    """Make all stores of this process skip work that tests do not need."""
    event.listen(Engine, "engine_connect", _share)
    event.listen(Pool, "checkout", _spare)


def _share(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_compiled)


def _spare(connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
    # Not on connect: the store sets its pragmas after the listeners of all pools.
    if not fsync and "quick" not in entry.info and isinstance(connection, sqlite3.Connection):
        entry.info["quick"] = True
        connection.cursor().execute("PRAGMA synchronous = OFF")
