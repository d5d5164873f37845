"""The files of an SQLite database: private, whole when they appear, and beside another's log never opened."""

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
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO

# What SQLite keeps beside the file of a database.
SIDE_FILES = ("-wal", "-shm", "-journal")


def create_private(file: Path) -> None:
    """Make an empty file, which SQLite takes for a database without tables; one that is there stays.

    SQLite gives the files beside it the same permissions.
    """
    # Where it cannot be made, SQLite says why when it is opened.
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE))


def keep_private(file: Path) -> None:
    """Take from others what they may do with a database's file, and with those beside it."""
    real = file.resolve()  # where SQLite puts the others too
    for each in (real, *(real.with_name(real.name + suffix) for suffix in SIDE_FILES)):
        _take_from_others(each)


def _take_from_others(file: Path) -> None:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & _OF_OTHERS:
            file.chmod(mode & PRIVATE)
            log.info("%s can be read by its owner alone from now on", file)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning(
            "others may read %s, which holds secrets: %s; let its owner `chmod 600` it", file, error.strerror
        )


# Files that are made

# What SQLite would take for changes of the file that it stands beside, whatever file that is.
UNFINISHED_CHANGES = ("-wal", "-journal")


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Give a name to write to; the file appears under its own name when it is whole and on the disk.

    Conflict if there is something under that name already; an empty file is nothing.
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
        raise Unavailable(f"the copy to {target} has failed: {error}") from error
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
                f"{left} is left of another store, and would spoil this one: remove it, or give another name"
            )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Logs that another database has left

# https://www.sqlite.org/fileformat2.html#the_write_ahead_log
_WAL_HEADER = 32
_FOREIGN_TABLE = (
    "SELECT 1 FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'meta')"
)
_META_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
_CHECK = "PRAGMA integrity_check(1)"
_META = "SELECT lineage, number FROM meta"
_Meta: TypeAlias = tuple[str, int]


def check_leftovers(database: Database) -> None:
    """Refuse a database beside which another one's changes lie; nothing is changed.

    Call it only while no other process writes to the database.
    """
    if database.file is None:
        return
    file = database.file.resolve()  # beside which SQLite keeps the log
    log = Path(f"{file}-wal")
    if not file.exists() or not log.exists() or log.stat().st_size <= _WAL_HEADER:
        return
    if not _belong_together(file):
        raise Conflict(
            f"{log} was not left by the store in {database.name}: SQLite would mix the two and destroy both. "
            f"To serve {database.name} as it is, move {log} and {file}-shm away; "
            "to serve the store that was there before, put its file back"
        )


def _belong_together(file: Path) -> bool:
    """Compare the file by itself with the file and its log together.

    Each transaction writes the row of `meta`, so the log has it. A copy of the same store from another time
    has the same lineage; its tables and indexes then contradict each other.
    """
    if not file.stat().st_size:
        return False  # SQLite would delete the log
    try:
        with closing(_open(file, "mode=ro")) as connection:
            together = _meta(connection)
            return _may_precede(file, together) and connection.execute(_CHECK).fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return True  # the file cannot be read: opening it says why
    except sqlite3.DatabaseError:
        return False


def _may_precede(file: Path, together: _Meta | None) -> bool:
    """Return whether the file by itself may be an earlier state of a store."""
    try:
        with closing(_open(file, "immutable=1")) as connection:
            alone = _meta(connection)
            if alone is None:  # the log has all of a young store; another program's file has tables
                return connection.execute(_FOREIGN_TABLE).fetchone() is None
    except sqlite3.DatabaseError:
        return True  # a checkpoint may have been cut off: the log then has all of its pages
    lineage, number = alone
    return together is not None and together[0] == lineage and together[1] >= number


def _meta(connection: sqlite3.Connection) -> _Meta | None:
    """Read which store it is and the number it has reached; None if there is no store."""
    if connection.execute(_META_TABLE).fetchone() is None:
        return None
    found: _Meta | None = connection.execute(_META).fetchone()
    return found


def _open(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, timeout=LOCK_SECONDS)
