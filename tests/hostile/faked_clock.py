"""A wall clock that a test turns under a real server, by libfaketime; the computer's own is never touched.

The monotonic clock goes on as it is, as it does when somebody sets a computer's clock. To a server that is
started after the wall clock was turned, that time has passed while it was down.
"""

import os
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

# Where the package is installed and the library is not found, tests fail instead of being left out.
INSTALLED = shutil.which("faketime") is not None
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
MISSING = "needs Debian's faketime, which make test-system installs"


class WallClock:
    """The wall clock of those who are started with its environment."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.ahead = timedelta()
        self.turn(timedelta())

    def turn(self, by: timedelta) -> None:
        """Turn it forward, or back, for all who run and all who will."""
        self.ahead += by
        # Put in place whole: it is read at each look at the clock.
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
