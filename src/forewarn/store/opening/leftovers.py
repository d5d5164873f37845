"""Refuse a write-ahead log beside a database that is not its own: SQLite would mix the two."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from forewarn.core.errors import Conflict
from forewarn.store.opening.database import LOCK_SECONDS, Database

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
