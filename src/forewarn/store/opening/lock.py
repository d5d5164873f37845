"""One server for each database. The lock dies with the process that holds it, however that ends."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from forewarn.core.errors import Conflict, Unavailable
from forewarn.store.opening.database import Database, connect_options, parse_database
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.failures import translate_failures
from forewarn.store.opening.private_files import PRIVATE

# Real seconds. Nobody waits for the lock's own connection, and what is given up may be another's next.
GIVEN_UP_AFTER = 10.0
# Any constant will do that no other program in the same database is likely to use.
_KEY = 0x666F7265_77610000
_HOLDER = text(
    "SELECT pid, application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE locktype = 'advisory' AND classid = :high AND objid = :low AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Lock:
    """The right to serve a database, while its block lasts; as it is, on one in memory, which needs none."""

    def keep(self) -> None:
        """Make sure that it is still held; Conflict if another server has it now."""

    def release(self) -> None:
        """Let another server have it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def hold(url: str) -> Lock:
    """Take the right to serve a database until the block ends; Conflict if another server has it."""
    database = parse_database(url)
    if not database.embedded:
        return ConnectionLock(database)
    if database.file is None:
        return Lock()
    return FileLock(database, database.file)


class FileLock(Lock):
    """The lock on an SQLite database: a file beside it, with the id of the process that holds it."""

    def __init__(self, database: Database, file: Path) -> None:
        path = f"{file.resolve()}.lock"  # one for each file, by whatever links it is reached
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise Unavailable(
                f"{database.name} cannot be locked: check that its folder exists and can be written to"
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 64, 0).decode(errors="replace").strip()
            self.release()
            raise _taken(database, f"process {holder}" if holder else "") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another server have it; the file stays, for removing it would race with the next holder."""
        os.close(self._descriptor)


class ConnectionLock(Lock):
    """The lock on a PostgreSQL database: held by a connection that does nothing else."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._engine = _engine(database)
        self._backend: int | None = None  # the process of the database that holds it for us
        self._connection = self._take()

    def keep(self) -> None:
        """Take it again if its connection was lost, and with that the lock; Conflict if it is too late.

        Unavailable while the lost connection still has it: its end is heard of before the lock is free.
        """
        if not self._connected():
            self._connection.close()
            self._connection = self._take()

    def release(self) -> None:
        """Let another server have it."""
        self._connection.close()
        self._engine.dispose()

    def _connected(self) -> bool:
        try:
            return not self._connection.closed and self._connection.scalar(text("SELECT true")) is True
        except Unavailable:
            return False

    def _take(self) -> Connection:
        connection = self._engine.connect()
        if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            self._backend = connection.scalar(text("SELECT pg_backend_pid()"))
            return connection
        backend, holder = _holder(connection)
        connection.close()
        if self._backend is not None and backend in (None, self._backend):
            raise Unavailable(f"the lost connection to {self._database.name} has not ended yet")
        raise _taken(self._database, holder)


def _engine(database: Database) -> Engine:
    from forewarn.store.opening.watched_postgresql import watch  # where there is a PostgreSQL

    engine = create_engine(
        database.url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args=connect_options(database.url) | {"application_name": f"forewarn, process {os.getpid()}"},
    )
    translate_failures(engine, database.name)
    watch(engine, Deadlines(name=database.name, limit=GIVEN_UP_AFTER))
    return engine


def _holder(connection: Connection) -> tuple[int | None, str]:
    """Find who has it: the process of the database, and what that says of itself."""
    found = connection.execute(_HOLDER, {"high": _KEY >> 32, "low": _KEY & 0xFFFFFFFF}).first()
    # Who may not see what others say of themselves finds nothing there.
    return (None, "") if found is None else (found.pid, (found.application_name or "")[len("forewarn, ") :])


def _taken(database: Database, holder: str) -> Conflict:
    who = f" ({holder})" if holder else ""
    return Conflict(f"another forewarn serves {database.name}{who}: stop it first, or use another --database")
