"""Which database is meant and how to connect to it: the settings of SQLite and of PostgreSQL."""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    Connection,
    Dialect,
    Engine,
    NullPool,
    QueuePool,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection, IsolationLevel
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState

from forewarn.core.errors import Invalid, Unavailable
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.failures import is_locked, translate_failures

# How many connections there are at most: to read, one for each thread that reads for people and some for the
# worker and those who call webhooks; to write, the worker's and those of what it does apart.
READING = 8
WRITING = 4
# Of each kind, when all is quiet: PostgreSQL has a process for each.
KEPT_OPEN = 2
# Longer than any use case takes; shorter than a silent database is waited for (`deadlines.py`).
LOCK_SECONDS = 3
CONNECT_SECONDS = 4
UNACKNOWLEDGED_SECONDS = 4
# The prober asks again in a moment.
PROBE_LOCK_SECONDS = 1
PROBE_SECONDS = 2
# What is written, and what that is decided on, is found by keys. A plan is made once, perhaps when hardly
# anything was there or open, and used when there is much: so PostgreSQL is to go from key to key, and to read
# no table whole where it can. To plan each time anew takes it longer than most answers. Where it must read a
# small table whole all the same, that would seem costly enough before PostgreSQL 18 to be compiled first.
BY_KEYS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_NONE: Mapping[str, str] = {}

_EXPECTED = "expected sqlite:///FILE or postgresql://USER@HOST/NAME"
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database as `--database` names it."""

    url: URL
    name: str  # what messages call it; never holds a password
    file: Path | None = None  # None: PostgreSQL, or SQLite in memory

    @property
    def embedded(self) -> bool:
        """Whether it is SQLite."""
        return self.url.get_backend_name() == "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """How to read and how to write; both may draw on the same connections."""

    reading: Engine
    writing: Engine
    deadlines: Deadlines
    probe: Callable[[], None]  # writes something, and raises while the database is silent or locked
    lives: Callable[[], None] = lambda: None  # asks something, and raises while it is silent

    def serve(self) -> None:
        """Wait for no answer longer than callers do, from now on."""
        self.deadlines.arm(self.probe, lives=self.lives)

    def check(self, engine: Engine) -> None:
        """Refuse to ask a database that does not answer."""
        self.deadlines.check(reading=engine is not self.writing)

    def dispose(self) -> None:
        """Close every connection."""
        self.deadlines.disarm()
        self.reading.dispose()
        self.writing.dispose()


def parse_database(text: str) -> Database:
    """Parse a database's URL."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: it may hold a password.
        raise Invalid(f"the database's URL cannot be read: {_EXPECTED}") from None
    if url.drivername == "sqlite":
        return _sqlite(url)
    if url.drivername in _POSTGRESQL:
        return _postgresql(url)
    raise Invalid(f"database {url.drivername}://…: {_EXPECTED}")


def without_password(text: str) -> str:
    """Return a database's URL as it may be shown and logged."""
    return make_url(text).render_as_string(hide_password=True)


def _sqlite(url: URL) -> Database:
    if url.host or url.query:
        raise Invalid(f"database {url.render_as_string()}: {_EXPECTED}, without a host and options")
    if url.database in (None, "", ":memory:"):
        return Database(url=URL.create("sqlite"), name="the database in memory")
    name = str(url.database)
    # Absolute, so that it stays the same file if the working directory changes.
    file = Path(name).expanduser().absolute()
    return Database(url=URL.create("sqlite", database=str(file)), name=name, file=file)


def _postgresql(url: URL) -> Database:
    host = url.host or url.query.get("host") or "localhost"
    return Database(url=url.set(drivername="postgresql+psycopg"), name=f"{url.database} on {host}")


def create_engines(database: Database) -> Engines:
    """Make the engines of a database; nothing is opened yet."""
    deadlines = Deadlines(name=database.name)
    if not database.embedded:
        return _postgresql_engines(database, deadlines)
    file = _SameFile(database)
    begin = "BEGIN IMMEDIATE"
    writing = _sqlite_engine(database, file, begin=begin, deadlines=deadlines, pool_size=1, max_overflow=0)
    if database.file is None:
        # Everything lives in one connection, which its users take in turns.
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


class _SameFile:
    """Refuses connections to a file that took the place of the one that was opened first.

    SQLite would read the old file's write-ahead log into it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._first: os.stat_result | None = None

    def check(self) -> None:
        if self._database.file is None:
            return
        try:
            found = self._database.file.stat()
        except OSError:
            found = None  # SQLite makes it, or says why it cannot be opened
        if self._first is None:
            self._first = found
        elif found is None or not os.path.samestat(self._first, found):
            raise Unavailable(f"{self._database.name} was removed or replaced: start forewarn again")


def _refusing_writes(reading: Engine) -> Engine:
    """Have the database refuse what a snapshot must not do."""

    @event.listens_for(reading, "connect")
    def refuse(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(_REFUSE)
        cursor.close()

    return reading


def _refuse_writes_in_turn(alone: Engine) -> None:
    """Have the database refuse the same while a connection that all use is used to read."""

    @event.listens_for(alone, "begin")
    def refuse(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only"):
            connection.exec_driver_sql(_REFUSE)

    @event.listens_for(alone, "reset")
    def allow(connection: DBAPIConnection, _entry: ConnectionPoolEntry, _state: PoolResetState) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only = OFF")
        cursor.close()


_REFUSE = "PRAGMA query_only = ON"


def _read_json(text: str | None) -> Any:
    # Most of what is kept so is empty, and a fleet has much of it.
    if text == "{}":
        return {}
    if text == "[]":
        return []
    return None if text is None else json.loads(text)


class _Json(JSON):
    """JSON in SQLite, read by one function: SQLAlchemy's own calls three for each value."""

    cache_ok = True

    def result_processor(self, _dialect: Dialect, _coltype: object) -> Callable[[str | None], Any]:
        return _read_json


def _sqlite_engine(
    database: Database, file: _SameFile, *, begin: str, deadlines: Deadlines | None = None, **pool: int
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
        _note_locked(engine, deadlines)

    @event.listens_for(engine, "do_connect")
    def check(*_: Any) -> None:
        file.check()

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # The driver would begin transactions by itself, and too late: only at the first write.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        # What was answered must survive a power cut, not only a crash.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        if deadlines is None:
            connection.exec_driver_sql(begin)
            return
        began = deadlines.begin()
        try:
            connection.exec_driver_sql(begin)  # here it waits for other writers, and nowhere else
        finally:
            deadlines.end(began)

    return engine


def _sqlite_prober(path: Path, file: _SameFile) -> Callable[[], None]:
    def probe() -> None:
        file.check()
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if is_locked(error):
                    raise

    return probe


def _postgresql_engines(database: Database, deadlines: Deadlines) -> Engines:
    # Where there is a PostgreSQL.
    from forewarn.store.opening import watched_postgresql as watched
    from forewarn.store.opening.pipelined_postgresql import pipeline

    def engine(isolation_level: IsolationLevel, most: int, settings: Mapping[str, str] = _NONE) -> Engine:
        made = create_engine(
            database.url,
            pool_timeout=LOCK_SECONDS,
            pool_size=KEPT_OPEN,
            max_overflow=most - KEPT_OPEN,
            isolation_level=isolation_level,
            connect_args=connect_options(database.url, settings=settings),
            json_deserializer=_read_json,
        )
        translate_failures(made, database.name)
        _note_locked(made, deadlines)
        watched.watch(made, deadlines)
        watched.check_before_use(made)
        return made

    probing = create_engine(
        database.url,
        poolclass=NullPool,
        connect_args=connect_options(database.url, connect=PROBE_SECONDS, lock=PROBE_LOCK_SECONDS),
    )
    watched.watch(probing, Deadlines(name=database.name, limit=PROBE_SECONDS))
    # Transactions are begun by what is sent first in them.
    writing = engine("AUTOCOMMIT", WRITING, BY_KEYS)
    pipeline(writing, begin="BEGIN ISOLATION LEVEL READ COMMITTED")
    return Engines(
        # Connections of their own: those who read cannot take the worker's, and one that was read-only would
        # say afterwards that it may write, also where the database says that nobody may.
        reading=engine("REPEATABLE READ", READING).execution_options(postgresql_readonly=True),
        writing=writing,
        deadlines=deadlines,
        probe=watched.prober(probing, watched.WRITE_SOMETHING),
        lives=watched.prober(probing, watched.ASK_SOMETHING),
    )


def connect_options(
    url: URL,
    *,
    connect: int | None = None,
    lock: int | None = None,
    settings: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """Return the options of a PostgreSQL connection that the URL leaves open.

    `settings` are the server's; those that the URL itself has come last, and count.
    """
    settings = {"lock_timeout": f"{lock or LOCK_SECONDS}s", **settings}
    ours = " ".join(f"-c {name}={value}" for name, value in settings.items())
    wanted = {
        "connect_timeout": connect or CONNECT_SECONDS,
        # A network that loses everything is noticed by the kernel, which then has no acknowledgement.
        "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
    }
    left_open = {name: value for name, value in wanted.items() if name not in url.query}
    return {**left_open, "options": " ".join((ours, *url.normalized_query.get("options", ())))}


def _note_locked(engine: Engine, deadlines: Deadlines) -> None:
    """Let those who come next not wait too for what another process has locked."""

    @event.listens_for(engine, "handle_error")
    def note(context: ExceptionContext) -> None:
        if is_locked(context.original_exception):
            deadlines.fell_silent("is being written by another process: try again", reads_too=False)
