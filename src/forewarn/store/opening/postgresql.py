"""PostgreSQL: its settings, and connections that wait no longer than the deadlines of their store allow."""

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
    is_locked,
    note_locked,
    read_json,
    translate_failures,
)
from forewarn.store.opening.deadlines import Deadlines, Silent, TooLong
from forewarn.store.opening.pipelined_postgresql import pipeline

R = TypeVar("R")

# Of each kind, when all is quiet: PostgreSQL has a process for each.
KEPT_OPEN = 2
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

# How often a connection that waits looks whether it should go on.
LOOK_EVERY = 0.1
# Something that must be written to the disk, and that waits for a writer who was cut off and lives on.
WRITE_SOMETHING = "UPDATE meta SET id = id"
ASK_SOMETHING = "SELECT 1"
# A connection that was not used for so long, in seconds, is asked whether it lives before it is used.
ASK_AFTER = 1.0
_USED = "forewarn.used"  # in the `info` of a pooled connection: when that was


def postgresql_engines(database: Database, deadlines: Deadlines) -> Engines:
    """Make the engines of a PostgreSQL database."""

    def engine(isolation_level: IsolationLevel, most: int, settings: Mapping[str, str] = _NONE) -> Engine:
        made = create_engine(
            database.url,
            pool_timeout=LOCK_SECONDS,
            pool_size=KEPT_OPEN,
            max_overflow=most - KEPT_OPEN,
            isolation_level=isolation_level,
            connect_args=connect_options(database.url, settings=settings),
            json_deserializer=read_json,
        )
        translate_failures(made, database.name)
        note_locked(made, deadlines)
        watch(made, deadlines)
        check_before_use(made)
        return made

    probing = create_engine(
        database.url,
        poolclass=NullPool,
        connect_args=connect_options(database.url, connect=PROBE_SECONDS, lock=PROBE_LOCK_SECONDS),
    )
    watch(probing, Deadlines(name=database.name, limit=PROBE_SECONDS))
    # Transactions are begun by what is sent first in them.
    writing = engine("AUTOCOMMIT", WRITING, BY_KEYS)
    pipeline(writing, begin="BEGIN ISOLATION LEVEL READ COMMITTED")
    return Engines(
        # Connections of their own: those who read cannot take the worker's, and one that was read-only would
        # say afterwards that it may write, also where the database says that nobody may.
        reading=engine("REPEATABLE READ", READING).execution_options(postgresql_readonly=True),
        writing=writing,
        deadlines=deadlines,
        probe=prober(probing, WRITE_SOMETHING),
        lives=prober(probing, ASK_SOMETHING),
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


class SaidNothing(psycopg.OperationalError):
    """The server has fallen silent; its connection is closed."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that is closed when its server falls silent; no request to cancel is sent there."""

    deadlines: Deadlines

    def wait(self, gen: PQGen[R], interval: float = LOOK_EVERY, timeout: float | None = None) -> R:
        """Wait for the server."""
        deadlines = self.deadlines
        began = deadlines.begin()
        try:
            return super().wait(deadlines.ended(gen), interval, timeout)
        except TooLong:
            self.close()
            raise SaidNothing("a statement takes too long") from None
        except Silent:
            self.close()
            deadlines.fell_silent()
            raise SaidNothing("it does not answer") from None
        finally:
            deadlines.end(began)


def watch(engine: Engine, deadlines: Deadlines) -> None:
    """Have an engine connect with connections that are watched."""

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _entry: Any, arguments: Any, options: Any) -> WatchedConnection:
        deadlines.check()
        began = deadlines.begin()
        try:
            connection = WatchedConnection.connect(*arguments, **options)
        except ConnectionTimeout:
            deadlines.fell_silent()
            raise
        finally:
            deadlines.end(began)
        connection.deadlines = deadlines
        return connection


def check_before_use(engine: Engine) -> None:
    """Have pooled connections replaced that live no longer: so a restart of PostgreSQL is harmless.

    A server that has ended a connection has said so, which costs nothing to see. It is asked only where the
    connection was not used for a while: what lies between may have forgotten it.
    """

    @event.listens_for(engine, "checkin")
    def note(_connection: Any, entry: ConnectionPoolEntry) -> None:
        entry.info[_USED] = monotonic()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, entry: ConnectionPoolEntry, _fairy: Any) -> None:
        used = entry.info.get(_USED)
        if used is None or (monotonic() - used < ASK_AFTER and not _has_news(connection)):
            return
        try:
            lives = engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            lives = False
        if not lives:
            raise InvalidatePoolError


def _has_news(connection: WatchedConnection) -> bool:
    """Return whether the server has said something that nobody has asked for, or has hung up."""
    if connection.closed:
        return True
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return bool(poller.poll(0))


def prober(engine: Engine, statement: str) -> Callable[[], None]:
    """Return what asks a server something, and raises while it is silent; an error is an answer."""

    def probe() -> None:
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql(statement)
        except DBAPIError as error:
            original = error.orig
            if isinstance(original, ConnectionTimeout | SaidNothing) or (original and is_locked(original)):
                raise

    return probe
