"""Files that only their owner reads and writes: a store holds the secrets of webhooks."""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

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
