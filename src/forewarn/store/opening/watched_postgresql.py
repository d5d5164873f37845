"""PostgreSQL's connections, none of which waits longer than the deadlines of its store allow."""

import select
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from forewarn.clock import monotonic
from forewarn.store.opening.deadlines import Deadlines, Silent, TooLong
from forewarn.store.opening.failures import is_locked

R = TypeVar("R")

# How often a connection that waits looks whether it should go on.
LOOK_EVERY = 0.1
# Something that must be written to the disk, and that waits for a writer who was cut off and lives on.
WRITE_SOMETHING = "UPDATE meta SET id = id"
ASK_SOMETHING = "SELECT 1"
# A connection that was not used for so long, in seconds, is asked whether it lives before it is used.
ASK_AFTER = 1.0
_USED = "forewarn.used"  # in the `info` of a pooled connection: when that was


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
