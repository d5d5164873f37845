"""Which database is meant and how to connect to it: the settings of SQLite and of PostgreSQL."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from forewarn.core.errors import Invalid
from forewarn.store.opening.failures import translate_failures

# Longer than any use case takes, shorter than a caller waits for an answer.
LOCK_SECONDS = 5
CONNECT_SECONDS = 5

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

    def dispose(self) -> None:
        """Close every connection."""
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
    if not database.embedded:
        return _postgresql_engines(database)
    if database.file is None:
        # Everything lives in one connection, which its users take in turns.
        alone = _sqlite_engine(database, begin="BEGIN IMMEDIATE", pool_size=1, max_overflow=0)
        return Engines(reading=alone, writing=alone)
    return Engines(
        reading=_sqlite_engine(database, begin="BEGIN"),
        writing=_sqlite_engine(database, begin="BEGIN IMMEDIATE", pool_size=1, max_overflow=0),
    )


def _sqlite_engine(database: Database, *, begin: str, **pool: int) -> Engine:
    engine = create_engine(
        database.url,
        poolclass=QueuePool,
        pool_timeout=LOCK_SECONDS,
        connect_args={"timeout": LOCK_SECONDS, "check_same_thread": False},
        **pool,
    )
    translate_failures(engine, database.name)

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
        connection.exec_driver_sql(begin)

    return engine


def _postgresql_engines(database: Database) -> Engines:
    # Asking first whether a pooled connection still lives is what makes a restart of PostgreSQL harmless.
    engine = create_engine(
        database.url,
        pool_pre_ping=True,
        pool_timeout=LOCK_SECONDS,
        isolation_level="READ COMMITTED",
        connect_args=connect_options(database.url),
    )
    translate_failures(engine, database.name)
    reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Engines(reading=reading, writing=engine)


def connect_options(url: URL) -> dict[str, Any]:
    """Return the settings of a PostgreSQL connection that the URL leaves open."""
    wanted = {"connect_timeout": CONNECT_SECONDS, "options": f"-c lock_timeout={LOCK_SECONDS}s"}
    return {name: value for name, value in wanted.items() if name not in url.query}
