"""What a program says: read as it grows, in small pieces, and no more of it than a log is for."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from forewarn.wire.text import on_one_line

# Whoever says more than this wants a file of its own for it.
MOST_LINES = 1000
# As much of a line as is worth a log entry.
LONGEST_LINE = 2000
# Read at once: nobody waits for so little.
PIECE = 64 * 1024


class Output:
    """The file that a program writes to; the process that stays with it keeps that short."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = 0  # how much of it was passed on
        self._lines = 0
        self._last = b""

    @property
    def last_line(self) -> str:
        """The last line so far that says something."""
        return on_one_line(self._last.decode(errors="replace")).strip()[:LONGEST_LINE]

    def listen(self, hear: Callable[[str], None], *, ended: bool = False, cut: int = 0) -> None:
        """Pass on what is new; of a program that has ended also say how much is left out, and its last line.

        `cut` is how much was taken out of the file meanwhile.
        """
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._told:
                    self._told = 0  # it was shortened
                while self._lines < MOST_LINES and self._pass_on(file, hear, ended=ended):
                    pass
                if ended and size > self._told:
                    self._leave_out(file, hear, size=size, cut=cut)
        except OSError:
            return

    def _pass_on(self, file: IO[bytes], hear: Callable[[str], None], *, ended: bool) -> bool:
        """Pass on the lines of the next piece; False if it has none."""
        file.seek(self._told)
        piece = file.read(PIECE)
        # A line that does not end in a whole piece is cut, and so is the last one.
        whole = len(piece) if ended or len(piece) == PIECE else 0
        lines = piece[: piece.rfind(b"\n") + 1 or whole].splitlines(keepends=True)
        for line in lines[: MOST_LINES - self._lines]:
            self._told += len(line)
            self._lines += 1
            self._hear(line, hear)
        return bool(lines)

    def _leave_out(self, file: IO[bytes], hear: Callable[[str], None], *, size: int, cut: int) -> None:
        left_out = size - self._told + cut
        file.seek(max(self._told, size - PIECE))
        lines = [line for line in file.read(PIECE).splitlines() if line.strip()]
        hear(f"({left_out} bytes more were said, which are left out here; this is the last line:)")
        if lines:
            self._hear(lines[-1], hear)

    def _hear(self, line: bytes, hear: Callable[[str], None]) -> None:
        # Cut before anything else looks at it: a line may be as long as the file.
        self._last = line.strip()[: 4 * LONGEST_LINE] or self._last
        hear(line.rstrip(b"\r\n").decode(errors="replace")[:LONGEST_LINE])
