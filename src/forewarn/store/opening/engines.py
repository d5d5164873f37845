"""Engines: the settings of SQLite; `postgresql.py` has those of PostgreSQL."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Connection, Dialect, Engine, QueuePool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState

from forewarn.core.errors import Unavailable
from forewarn.store.opening.database import (
    LOCK_SECONDS,
    READING,
    Database,
    Engines,
    fail_fast_when_locked,
    is_locked,
    read_json,
    translate_failures,
)
from forewarn.store.opening.deadlines import Deadlines


def create_engines(database: Database) -> Engines:
    """Create the engines of a database; nothing connects yet."""
    deadlines = Deadlines(name=database.name)
    if not database.embedded:
        # Imported only if PostgreSQL is in use.
        from forewarn.store.opening.postgresql import postgresql_engines

        return postgresql_engines(database, deadlines)
    file = _FileIdentity(database)
    begin = "BEGIN IMMEDIATE"
    writing = _sqlite_engine(database, file, begin=begin, deadlines=deadlines, pool_size=1, max_overflow=0)
    if database.file is None:
        # The database is one connection, which its users take in turns.
        reading = writing.execution_options(read_only=True)
        _refuse_writes_in_turn(writing)
        return Engines(reading=reading, writing=writing, deadlines=deadlines, probe=lambda: None)
    snapshots = _sqlite_engine(database, file, begin="BEGIN", pool_size=READING, max_overflow=0)
    return Engines(
        reading=_refusing_writes(snapshots),
        writing=writing,
        deadlines=deadlines,
        probe=_sqlite_prober(database.file, file),
    )


class _FileIdentity:
    """Refuses to connect after the database file was replaced.

    SQLite would apply the write-ahead log of the old file to the new one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._first: os.stat_result | None = None  # owner: the thread that connects first, at the start

    def check(self) -> None:
        if self._database.file is None:
            return
        try:
            found = self._database.file.stat()
        except OSError:
            found = None  # SQLite creates it, or reports why it cannot
        if self._first is None:
            self._first = found
        elif found is None or not os.path.samestat(self._first, found):
            raise Unavailable(f"{self._database.name} was removed or replaced: start forewarn again")


def _refusing_writes(reading: Engine) -> Engine:
    """Make the database refuse writes in snapshots."""

    @event.listens_for(reading, "connect")
    def refuse(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(_READ_ONLY)
        cursor.close()

    return reading


def _refuse_writes_in_turn(alone: Engine) -> None:
    """Make the database refuse writes while a snapshot uses the only connection."""

    @event.listens_for(alone, "begin")
    def refuse(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only"):
            connection.exec_driver_sql(_READ_ONLY)

    @event.listens_for(alone, "reset")
    def allow(connection: DBAPIConnection, _entry: ConnectionPoolEntry, _state: PoolResetState) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only = OFF")
        cursor.close()


_READ_ONLY = "PRAGMA query_only = ON"


class _Json(JSON):
    """JSON in SQLite, read with one function call: the type of SQLAlchemy makes three for each value."""

    cache_ok = True

    def result_processor(self, _dialect: Dialect, _coltype: object) -> Callable[[str | None], Any]:
        return read_json


def _sqlite_engine(
    database: Database, file: _FileIdentity, *, begin: str, deadlines: Deadlines | None = None, **pool: int
) -> Engine:
    engine = create_engine(
        database.url,
        poolclass=QueuePool,
        pool_timeout=LOCK_SECONDS,
        connect_args={"timeout": LOCK_SECONDS, "check_same_thread": False},
        **pool,
    )
    engine.dialect.colspecs = {**engine.dialect.colspecs, JSON: _Json}
    translate_failures(engine, database.name)
    if deadlines is not None:
        fail_fast_when_locked(engine, deadlines)

    @event.listens_for(engine, "do_connect")
    def check(*_: Any) -> None:
        file.check()

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # By itself, the driver begins transactions, and too late: at the first write.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        # A change that was answered must survive a power failure, not only a crash.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        if deadlines is None:
            connection.exec_driver_sql(begin)
            return
        began = deadlines.begin()
        try:
            connection.exec_driver_sql(begin)  # the only statement that waits for other writers
        finally:
            deadlines.end(began)

    return engine


def _sqlite_prober(path: Path, file: _FileIdentity) -> Callable[[], None]:
    def probe() -> None:
        file.check()
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if is_locked(error):
                    raise

    return probe
