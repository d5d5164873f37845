"""One server for each database. The lock dies with the process that holds it, however that ends."""

import errno
import fcntl
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from forewarn.core.errors import Conflict, Unavailable
from forewarn.store.opening.database import Database, parse_database, translate_failures
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.sqlite_files import PRIVATE, check_leftovers

# Real seconds. Nobody waits for the lock's own connection, and what is given up may be another's next.
GIVEN_UP_AFTER = 10.0
# Far beyond the bytes that SQLite locks (from 1 GiB), and beyond the end of any file.
_FIRST_BYTE = 1 << 62
_RANGE = struct.Struct("hhqqi4x")  # `struct flock`: kind, whence, start, length, process
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


def check_unserved(database: Database) -> None:
    """Refuse a file beside which another store's log lies; a running server's is its own.

    For commands that open a store without its lock, before they connect to it.
    """
    if database.file is None or not database.file.exists():
        return
    try:
        descriptor = os.open(database.file, os.O_RDONLY)
    except OSError:
        return  # SQLite says why
    try:
        served = _file_holder(descriptor) is not None
    finally:
        os.close(descriptor)
    if not served:
        check_leftovers(database)


class FileLock(Lock):
    """The lock on an SQLite database: on a byte of the file itself, whatever its name or the link to it.

    An open-file-description lock, which neither SQLite's own locks nor a descriptor that is closed affect.
    The lock is as many bytes long as the holder's process id, so the next process can name the holder.
    Closing the descriptor ends SQLite's POSIX locks in this process: close the store first.
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
            self._take()
            check_leftovers(database)
        except BaseException:
            self.release()
            raise

    def keep(self) -> None:
        """Conflict if the file was removed or replaced: nothing that is saved would be found again."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            raise self._gone("was removed") from None
        except OSError as error:
            raise Unavailable(f"{self._database.name} cannot be looked at: {error.strerror}") from error
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            raise self._gone("was replaced")

    def release(self) -> None:
        """Let another server have it."""
        os.close(self._descriptor)

    def _take(self) -> None:
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _range(fcntl.F_WRLCK, os.getpid()))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise Unavailable(f"{self._database.name} cannot be locked: {error.strerror}") from error
            process = _file_holder(self._descriptor)
            raise _taken(self._database, "" if process is None else f"process {process}") from None

    def _gone(self, what: str) -> Conflict:
        return Conflict(
            f"{self._database.name} {what} while this forewarn served it, "
            "so nothing more can be saved there: start it again"
        )


def _file_holder(descriptor: int) -> int | None:
    """Return the id of the process that holds the lock."""
    asked = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK, 1))
    kind, _, _, process, _ = _RANGE.unpack(asked)
    return None if kind == fcntl.F_UNLCK else process


def _range(kind: int, length: int) -> bytes:
    return _RANGE.pack(kind, os.SEEK_SET, _FIRST_BYTE, length, 0)


class ConnectionLock(Lock):
    """The lock on a PostgreSQL database: held by a connection that does nothing else."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.engine = _engine(database)
        # Owner of both: the thread that watches the lock.
        self._backend: int | None = None  # the process of the database that holds it for us
        self.connection = self._take()

    def keep(self) -> None:
        """Take it again if its connection was lost, and with that the lock; Conflict if it is too late.

        Unavailable while the lost connection still has it: its end is heard of before the lock is free.
        """
        if not self._connected():
            self.connection.close()
            self.connection = self._take()

    def release(self) -> None:
        """Let another server have it."""
        self.connection.close()
        self.engine.dispose()

    def _connected(self) -> bool:
        try:
            return not self.connection.closed and self.connection.scalar(text("SELECT true")) is True
        except Unavailable:
            return False

    def _take(self) -> Connection:
        connection = self.engine.connect()
        if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            self._backend = connection.scalar(text("SELECT pg_backend_pid()"))
            return connection
        backend, holder = _holder(connection)
        connection.close()
        if self._backend is not None and backend in (None, self._backend):
            raise Unavailable(f"the lost connection to {self._database.name} has not ended yet")
        raise _taken(self._database, holder)


def _engine(database: Database) -> Engine:
    from forewarn.store.opening.postgresql import connect_options, watch  # where there is a PostgreSQL

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
