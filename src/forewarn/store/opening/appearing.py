"""A file that appears when it is whole."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forewarn.core.errors import Conflict, Unavailable
from forewarn.store.opening.private_files import create_private

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
