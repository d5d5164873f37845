"""The output of a program: read as it grows, in small pieces, and no more of it than a log is for."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from forewarn.core.spelling import on_one_line

# A program that prints more than this wants a file of its own for it.
MOST_LINES = 1000
# As much of a line as is worth a log entry.
LONGEST_LINE = 2000
# Read at once: so little takes no time.
PIECE = 64 * 1024


class Output:
    """The file that a program writes to; its keeper keeps that short."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # up to where it was passed on
        self._passed_on = 0  # how much that was, with what is no longer in it
        self._lines = 0
        self._last = b""

    @property
    def last_line(self) -> str:
        """The last line so far that is not empty."""
        return on_one_line(self._last.decode(errors="replace")).strip()[:LONGEST_LINE]

    def read_new(self, on_line: Callable[[str], None], *, ended: bool = False) -> None:
        """Pass on what is new."""
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:
                    self._offset = 0  # it was shortened
                while self._lines < MOST_LINES and self._pass_on(file, on_line, ended=ended):
                    pass
        except OSError:
            return

    def finish(self, on_line: Callable[[str], None], *, cut: int, last: str) -> None:
        """Pass on the rest of a program that has ended; of what is left out its size and the last line.

        So much was taken out of the file meanwhile, with this as its last line.
        """
        self.read_new(on_line, ended=True)
        with contextlib.suppress(OSError):
            whole = self._path.stat().st_size
            if (left_out := whole + cut - self._passed_on) > 0:
                on_line(f"({left_out} bytes more were said, which are left out here; this is the last line:)")
                self._emit(self._end(whole) or last.encode(), on_line)

    def _end(self, whole: int) -> bytes:
        """Read the last line that was not passed on."""
        with self._path.open("rb") as file:
            file.seek(max(self._offset, whole - PIECE))
            lines = [line for line in file.read(PIECE).splitlines() if line.strip()]
        return lines[-1] if lines else b""

    def _pass_on(self, file: IO[bytes], on_line: Callable[[str], None], *, ended: bool) -> bool:
        """Pass on the lines of the next piece; False if it has none."""
        file.seek(self._offset)
        piece = file.read(PIECE)
        # A line that does not end in a whole piece is cut, and so is the last one.
        whole = len(piece) if ended or len(piece) == PIECE else 0
        lines = piece[: piece.rfind(b"\n") + 1 or whole].splitlines(keepends=True)
        for line in lines[: MOST_LINES - self._lines]:
            self._offset += len(line)
            self._passed_on += len(line)
            self._lines += 1
            self._emit(line, on_line)
        return bool(lines)

    def _emit(self, line: bytes, on_line: Callable[[str], None]) -> None:
        # Cut before anything else looks at it: a line may be as long as the file.
        self._last = line.strip()[: 4 * LONGEST_LINE] or self._last
        on_line(line.rstrip(b"\r\n").decode(errors="replace")[:LONGEST_LINE])
