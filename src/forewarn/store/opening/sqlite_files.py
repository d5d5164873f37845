"""The files of an SQLite database: private, written atomically, and never opened with another store's log."""

import logging
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from forewarn.core.errors import Conflict, Unavailable
from forewarn.store.opening.database import LOCK_SECONDS, Database

log = logging.getLogger(__name__)

# A store holds the secrets of webhooks.
PRIVATE = 0o600
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO

# The files that SQLite keeps beside a database.
SIDE_FILES = ("-wal", "-shm", "-journal")


def create_private(file: Path) -> None:
    """Create an empty file with private permissions, unless the file exists.

    For SQLite it is a database without tables. SQLite gives the files beside it the same permissions.
    """
    # If this fails, SQLite reports why when it opens the file.
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE))


def keep_private(file: Path) -> None:
    """Remove the permissions of other users on a database file and the files beside it."""
    real = file.resolve()  # SQLite keeps the other files there
    for each in (real, *(real.with_name(real.name + suffix) for suffix in SIDE_FILES)):
        _remove_other_permissions(each)


def _remove_other_permissions(file: Path) -> None:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & _OTHER_USERS:
            file.chmod(mode & PRIVATE)
            log.info("removed the permissions of other users on %s", file)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning(
            "other users may read %s, which holds secrets: %s; its owner should run `chmod 600`",
            file,
            error.strerror,
        )


# New files

# SQLite applies the changes in these to whatever database is beside them.
UNFINISHED_CHANGES = ("-wal", "-journal")


@contextmanager
def written_atomically(target: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to the target once it is complete and on the disk.

    Conflict if the target exists and is not an empty file.
    """
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    _check_free(target)
    try:
        create_private(unfinished)
        yield unfinished
        _sync(unfinished)
        _check_free(target)
        unfinished.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise Unavailable(f"{target} cannot be written: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"the copy to {target} failed: {error}") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)


def _check_free(target: Path) -> None:
    if target.exists() and (not target.is_file() or target.stat().st_size):
        raise Conflict(f"{target} exists already: give another name")
    for suffix in UNFINISHED_CHANGES:
        left = Path(f"{target}{suffix}")
        if left.exists() and left.stat().st_size:
            raise Conflict(
                f"{left} belongs to another store and would damage this one: remove it, or give another name"
            )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Write-ahead logs of another database

# https://www.sqlite.org/fileformat2.html#the_write_ahead_log
_WAL_HEADER = 32
_FOREIGN_TABLE = (
    "SELECT 1 FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'meta')"
)
_META_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
_CHECK = "PRAGMA integrity_check(1)"
_META = "SELECT lineage, number FROM meta"
_Meta: TypeAlias = tuple[str, int]


def check_foreign_log(database: Database) -> None:
    """Refuse a database that has the write-ahead log of another one beside it; this changes no file.

    Call it only while no other process writes to the database.
    """
    if database.file is None:
        return
    file = database.file.resolve()  # SQLite keeps the log beside the real file
    log = Path(f"{file}-wal")
    if not file.exists() or not log.exists() or log.stat().st_size <= _WAL_HEADER:
        return
    if not _log_belongs_to(file):
        raise Conflict(
            f"{log} does not belong to the store in {database.name}: SQLite would mix and destroy both. "
            f"To use {database.name} as it is, move {log} and {file}-shm away; "
            "to use the store that was there before, restore its file"
        )


def _log_belongs_to(file: Path) -> bool:
    """Compare the state of the file alone with the state of the file and the log.

    Each transaction writes the row of `meta`, so the log has it. A copy of the same store from another time
    has the same lineage, but with the log its tables and indexes are inconsistent.
    """
    if not file.stat().st_size:
        return False  # SQLite would delete the log
    try:
        with closing(_open(file, "mode=ro")) as connection:
            together = _meta(connection)
            return _may_be_earlier(file, together) and connection.execute(_CHECK).fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return True  # the file cannot be read: opening it reports why
    except sqlite3.DatabaseError:
        return False


def _may_be_earlier(file: Path, together: _Meta | None) -> bool:
    """Return whether the file alone may be an earlier state of the store."""
    try:
        with closing(_open(file, "immutable=1")) as connection:
            alone = _meta(connection)
            if alone is None:  # a new store may be in the log only; a file of another program has tables
                return connection.execute(_FOREIGN_TABLE).fetchone() is None
    except sqlite3.DatabaseError:
        return True  # a checkpoint was interrupted: the log still has all of its pages
    lineage, number = alone
    return together is not None and together[0] == lineage and together[1] >= number


def _meta(connection: sqlite3.Connection) -> _Meta | None:
    """Read the lineage of a store and the number it has reached; None if there is no store."""
    if connection.execute(_META_TABLE).fetchone() is None:
        return None
    found: _Meta | None = connection.execute(_META).fetchone()
    return found


def _open(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, timeout=LOCK_SECONDS)
