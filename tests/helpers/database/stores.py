"""Stores that cost a test little: migrated once, without fsync, and with each statement compiled once."""

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

# What a power cut would take is of no interest, but to the tests that ask for the fixture `with_fsync`.
fsync = False


def sqlite_url(folder: Path) -> str:
    """Give the URL of a store in a folder; one that is not there yet is made, up to date and empty."""
    file = folder / "forewarn.db"
    make_sqlite(file)
    return f"sqlite:///{file}"


_prepared: dict[str, bytes] = {}


def prepared_sqlite(folder: Path, name: str, prepare: Callable[[str], None]) -> str:
    """Give the URL of a copy of a store that is prepared once: by what is done to the store at a URL."""
    if name not in _prepared:
        with tempfile.TemporaryDirectory() as apart:
            prepare(sqlite_url(Path(apart)))
            _prepared[name] = (Path(apart) / "forewarn.db").read_bytes()
    file = folder / "forewarn.db"
    file.write_bytes(_prepared[name])
    return f"sqlite:///{file}"


def make_sqlite(file: Path) -> None:
    """Make an SQLite database with the tables of a store and nothing in them, if the file is not there."""
    if not file.exists():
        file.write_bytes(_migrated_sqlite())


@cache
def _migrated_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "template.db"
        make_tables(f"sqlite:///{file}")
        return file.read_bytes()


def make_tables(url: str) -> None:
    """Migrate an empty database; what opens it finds a store that has no lineage yet, as in a new one."""
    database = parse_database(url)
    engines = create_engines(database)
    with engines.writing.begin() as connection:
        migrate(connection, name=database.name)
    engines.dispose()


class _Compiled(dict[Any, Any]):
    """Compiled statements by what they say and the kind of database, so that all engines share them.

    An engine keeps its own; most tests would compile each statement anew for the few times it is run.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


_compiled = _Compiled()


def quicken() -> None:
    """Have all stores of this process spare what tests do not need."""
    event.listen(Engine, "engine_connect", _share)
    event.listen(Pool, "checkout", _spare)


def _share(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_compiled)


def _spare(connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
    # Not when it connects: the store has its say after those who listen to all pools.
    if not fsync and "quick" not in entry.info and isinstance(connection, sqlite3.Connection):
        entry.info["quick"] = True
        connection.cursor().execute("PRAGMA synchronous = OFF")
