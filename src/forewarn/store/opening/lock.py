"""The lock that lets only one server use a database. It ends with the process that holds it."""

import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from forewarn.core.errors import Conflict, Unavailable
from forewarn.store.opening.database import Database, parse_database, translate_failures
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.sqlite_files import PRIVATE, check_foreign_log

# Real seconds. No caller waits for the lock's connection. Giving the lock up early may hand it to another
# server.
LOCK_TIMEOUT = 10.0
# Beyond the end of any file, and far beyond the bytes that SQLite locks (from 1 GiB).
_FIRST_BYTE = 1 << 62
_RANGE = struct.Struct("hhqqi4x")  # `struct flock`: kind, whence, start, length, process
# An arbitrary constant that no other program in the database is likely to use.
_KEY = 0x666F7265_77610000
_HOLDER = text(
    "SELECT pid, application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE locktype = 'advisory' AND classid = :high AND objid = :low AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Lock:
    """The right to serve a database until the block ends. In memory none is needed: this does nothing."""

    def keep(self) -> None:
        """Check that the lock is still held; Conflict if another server has it."""

    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(url: str) -> Lock:
    """Take the lock of a database until the block ends; Conflict if another server has it."""
    database = parse_database(url)
    if not database.embedded:
        return ConnectionLock(database)
    if database.file is None:
        return Lock()
    return FileLock(database, database.file)


def check_unserved(database: Database) -> None:
    """Refuse a database file that has the write-ahead log of another store beside it.

    Commands that open a store without its lock call this before they connect. While a server runs, the log is
    its own.
    """
    if database.file is None or not database.file.exists():
        return
    try:
        descriptor = os.open(database.file, os.O_RDONLY)
    except OSError:
        return  # SQLite reports why
    try:
        served = _file_holder(descriptor) is not None
    finally:
        os.close(descriptor)
    if not served:
        check_foreign_log(database)


class FileLock(Lock):
    """The lock on an SQLite database: an open-file-description lock on bytes of the file.

    It does not depend on the name of the file. Neither SQLite's own locks nor other descriptors affect it.
    Its length is the process id of the holder, so another process can name the holder.
    Close the store first: closing the descriptor ends SQLite's POSIX locks in this process.
    """

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise Unavailable(
                f"{database.name} cannot be locked: check that its folder exists and can be written to"
            ) from error
        try:
            self._acquire()
            check_foreign_log(database)
        except BaseException:
            self.release()
            raise

    def keep(self) -> None:
        """Check that the file was not removed or replaced: further changes would be lost."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            raise self._gone("was removed") from None
        except OSError as error:
            raise Unavailable(f"{self._database.name} cannot be checked: {error.strerror}") from error
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            raise self._gone("was replaced")

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)

    def _acquire(self) -> None:
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _range(fcntl.F_WRLCK, os.getpid()))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise Unavailable(f"{self._database.name} cannot be locked: {error.strerror}") from error
            process = _file_holder(self._descriptor)
            raise _lock_taken(self._database, "" if process is None else f"process {process}") from None

    def _gone(self, what: str) -> Conflict:
        return Conflict(
            f"{self._database.name} {what} while this server used it, "
            "so it can save nothing more: start it again"
        )


def _file_holder(descriptor: int) -> int | None:
    """Return the id of the process that holds the lock."""
    asked = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK, 1))
    kind, _, _, process, _ = _RANGE.unpack(asked)
    return None if kind == fcntl.F_UNLCK else process


def _range(kind: int, length: int) -> bytes:
    return _RANGE.pack(kind, os.SEEK_SET, _FIRST_BYTE, length, 0)


class ConnectionLock(Lock):
    """The lock on a PostgreSQL database: an advisory lock of a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.engine = _engine(database)
        # Owner of both: the thread that watches the lock.
        self._backend: int | None = None  # the backend process that holds the lock
        self.connection = self._acquire()

    def keep(self) -> None:
        """Take the lock again if its connection was lost; Conflict if another server has it.

        Unavailable while PostgreSQL has not noticed the end of the lost connection, which still has the lock.
        """
        if not self._connected():
            self.connection.close()
            self.connection = self._acquire()

    def release(self) -> None:
        """Release the lock."""
        self.connection.close()
        self.engine.dispose()

    def _connected(self) -> bool:
        try:
            return not self.connection.closed and self.connection.scalar(text("SELECT true")) is True
        except Unavailable:
            return False

    def _acquire(self) -> Connection:
        connection = self.engine.connect()
        if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            self._backend = connection.scalar(text("SELECT pg_backend_pid()"))
            return connection
        backend, holder = _holder(connection)
        connection.close()
        if self._backend is not None and backend in (None, self._backend):
            raise Unavailable(f"the lost connection to {self._database.name} has not ended yet")
        raise _lock_taken(self._database, holder)


def _engine(database: Database) -> Engine:
    from forewarn.store.opening.postgresql import connect_options, watch  # only if PostgreSQL is used

    engine = create_engine(
        database.url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args=connect_options(database.url) | {"application_name": f"forewarn, process {os.getpid()}"},
    )
    translate_failures(engine, database.name)
    watch(engine, Deadlines(name=database.name, limit=LOCK_TIMEOUT))
    return engine


def _holder(connection: Connection) -> tuple[int | None, str]:
    """Return the backend process that has the lock, and the name of its application."""
    found = connection.execute(_HOLDER, {"high": _KEY >> 32, "low": _KEY & 0xFFFFFFFF}).first()
    # A user without the right to see other sessions gets no application name.
    return (None, "") if found is None else (found.pid, (found.application_name or "")[len("forewarn, ") :])


def _lock_taken(database: Database, holder: str) -> Conflict:
    who = f" ({holder})" if holder else ""
    return Conflict(f"another server uses {database.name}{who}: stop it first, or use another --database")
