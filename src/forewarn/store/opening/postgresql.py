"""PostgreSQL: settings, and connections that keep to the deadlines of their store."""

import select
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from sqlalchemy import URL, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from forewarn.clock import monotonic
from forewarn.store.opening.database import (
    LOCK_SECONDS,
    READING,
    WRITING,
    Database,
    Engines,
    fail_fast_when_locked,
    is_locked,
    read_json,
    translate_failures,
)
from forewarn.store.opening.deadlines import Deadlines, StatementTooLong, Unresponsive
from forewarn.store.opening.pipelined_postgresql import pipeline

R = TypeVar("R")

# Idle connections of each engine: each costs PostgreSQL a process.
IDLE_CONNECTIONS = 2
CONNECT_SECONDS = 4
UNACKNOWLEDGED_LIMIT_SECONDS = 4
# Short: the prober tries again soon.
PROBE_LOCK_SECONDS = 1
PROBE_SECONDS = 2
# Writing transactions find all rows by keys. PostgreSQL plans a statement once, perhaps while its tables are
# almost empty, and reuses the plan when they are large. So it must use indexes and avoid sequential scans.
# Planning each time takes longer than most statements. If PostgreSQL must scan a small table after all,
# versions before 18 would take the scan for expensive and compile it first (`jit`).
KEY_LOOKUP_SETTINGS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_NONE: Mapping[str, str] = {}

# How often a waiting connection checks its deadline.
CHECK_EVERY = 0.1
# Must reach the disk, and waits for a writer that lost its connection but still holds the lock.
PROBE_STATEMENT = "UPDATE meta SET id = id"
PING_STATEMENT = "SELECT 1"
# A connection that was idle for this many seconds is pinged before use.
PING_AFTER = 1.0
_USED = "forewarn.used"  # key in the `info` of a pooled connection: when it was last used


def postgresql_engines(database: Database, deadlines: Deadlines) -> Engines:
    """Create the engines of a PostgreSQL database."""

    def engine(isolation_level: IsolationLevel, most: int, settings: Mapping[str, str] = _NONE) -> Engine:
        made = create_engine(
            database.url,
            pool_timeout=LOCK_SECONDS,
            pool_size=IDLE_CONNECTIONS,
            max_overflow=most - IDLE_CONNECTIONS,
            isolation_level=isolation_level,
            connect_args=connect_options(database.url, settings=settings),
            json_deserializer=read_json,
        )
        translate_failures(made, database.name)
        fail_fast_when_locked(made, deadlines)
        watch(made, deadlines)
        check_before_use(made)
        return made

    probing = create_engine(
        database.url,
        poolclass=NullPool,
        connect_args=connect_options(database.url, connect=PROBE_SECONDS, lock=PROBE_LOCK_SECONDS),
    )
    watch(probing, Deadlines(name=database.name, limit=PROBE_SECONDS))
    # The pipeline sends BEGIN with the first statement.
    writing = engine("AUTOCOMMIT", WRITING, KEY_LOOKUP_SETTINGS)
    pipeline(writing, begin="BEGIN ISOLATION LEVEL READ COMMITTED")
    return Engines(
        # A pool of its own: readers must not take the worker's connections, and resetting a read-only
        # connection would allow writes even if the database's default is read-only.
        reading=engine("REPEATABLE READ", READING).execution_options(postgresql_readonly=True),
        writing=writing,
        deadlines=deadlines,
        probe=prober(probing, PROBE_STATEMENT),
        ping=prober(probing, PING_STATEMENT),
    )


def connect_options(
    url: URL,
    *,
    connect: int | None = None,
    lock: int | None = None,
    settings: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """Return the options of a connection, except those that the URL sets.

    `settings` are settings of the server; the settings of the URL come last and win.
    """
    settings = {"lock_timeout": f"{lock or LOCK_SECONDS}s", **settings}
    ours = " ".join(f"-c {name}={value}" for name, value in settings.items())
    wanted = {
        "connect_timeout": connect or CONNECT_SECONDS,
        # Ends the connection if the network loses everything, so that no acknowledgement arrives.
        "tcp_user_timeout": UNACKNOWLEDGED_LIMIT_SECONDS * 1000,
    }
    left_open = {name: value for name, value in wanted.items() if name not in url.query}
    return {**left_open, "options": " ".join((ours, *url.normalized_query.get("options", ())))}


class ServerSilent(psycopg.OperationalError):
    """The server did not answer in time, so its connection was closed."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that closes, without a cancel request, when its server stops answering."""

    deadlines: Deadlines

    def wait(self, gen: PQGen[R], interval: float = CHECK_EVERY, timeout: float | None = None) -> R:
        """Wait for the server."""
        deadlines = self.deadlines
        began = deadlines.begin()
        try:
            return super().wait(deadlines.with_deadline(gen), interval, timeout)
        except StatementTooLong:
            self.close()
            raise ServerSilent("a statement takes too long") from None
        except Unresponsive:
            self.close()
            deadlines.fail_fast()
            raise ServerSilent("it does not answer") from None
        finally:
            deadlines.end(began)


def watch(engine: Engine, deadlines: Deadlines) -> None:
    """Make an engine use watched connections."""

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _entry: Any, arguments: Any, options: Any) -> WatchedConnection:
        deadlines.check()
        began = deadlines.begin()
        try:
            connection = WatchedConnection.connect(*arguments, **options)
        except ConnectionTimeout:
            deadlines.fail_fast()
            raise
        finally:
            deadlines.end(began)
        connection.deadlines = deadlines
        return connection


def check_before_use(engine: Engine) -> None:
    """Replace dead pooled connections, so that a restart of PostgreSQL is harmless.

    A server that closes a connection sends a message, which costs nothing to check. Only an idle connection
    is pinged: a firewall in between may have dropped it.
    """

    @event.listens_for(engine, "checkin")
    def note(_connection: Any, entry: ConnectionPoolEntry) -> None:
        entry.info[_USED] = monotonic()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, entry: ConnectionPoolEntry, _fairy: Any) -> None:
        used = entry.info.get(_USED)
        if used is None or (monotonic() - used < PING_AFTER and not _has_unread_message(connection)):
            return
        try:
            lives = engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            lives = False
        if not lives:
            raise InvalidatePoolError


def _has_unread_message(connection: WatchedConnection) -> bool:
    """Return whether the server has sent an unrequested message or has hung up."""
    if connection.closed:
        return True
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return bool(poller.poll(0))


def prober(engine: Engine, statement: str) -> Callable[[], None]:
    """Return a function that raises while the server does not answer; an error counts as an answer."""

    def probe() -> None:
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql(statement)
        except DBAPIError as error:
            original = error.orig
            if isinstance(original, ConnectionTimeout | ServerSilent) or (original and is_locked(original)):
                raise

    return probe
