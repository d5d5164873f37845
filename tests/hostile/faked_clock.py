"""A wall clock that a test sets under a real server with libfaketime; the computer's clock is not changed.

The monotonic clock is not affected, as on a computer whose clock is set. For a server that starts after the
wall clock was set forward, that time has passed while it was down.
"""

import os
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

# If the package is installed but the library is missing, the tests fail instead of being skipped.
INSTALLED = shutil.which("faketime") is not None
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
MISSING = "needs Debian's faketime, which make test-system installs"


class WallClock:
    """The wall clock of processes that are started with its environment."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.ahead = timedelta()
        self.turn(timedelta())

    def turn(self, by: timedelta) -> None:
        """Set it forward or back, for running and future processes."""
        self.ahead += by
        # Replaced atomically, because processes read the file at each look at the clock.
        written = self._file.with_suffix(".new")
        written.write_text(f"{self.ahead.total_seconds():+.0f}\n")
        os.replace(written, self._file)

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
