"""Kills an agent half-way, as a crash would, and starts it again: run as a program, in the agent's place.

Half-way is when the journal says that a handler's program runs, or a moment after any handler has begun.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from forewarn.agent.journal.entries import Begun, Entry, ProgramRunning
from forewarn.agent.journal.journal_file import read_entries
from forewarn.clock import SystemClock, monotonic

LOOK_EVERY = 0.02
# For a program to be started, once a handler has begun.
A_MOMENT = 0.3


def main(words: Sequence[str]) -> int:
    """Take the journal, then the command."""
    journal, command = Path(words[0]), words[1:]
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    first = subprocess.Popen(command)  # noqa: S603 - the agent's own command
    half_way = _HalfWay(journal)
    while not ending.is_set() and first.poll() is None and not half_way.reached():
        ending.wait(LOOK_EVERY)
    if ending.is_set() or first.poll() is not None:
        return _ended(first)
    first.kill()
    first.wait()
    mark(journal).write_text(SystemClock().now().isoformat(), encoding="ascii")
    sys.stdout.write("the agent was killed, and is started again\n")
    sys.stdout.flush()
    second = subprocess.Popen(command)  # noqa: S603 - as above
    while not ending.is_set() and second.poll() is None:
        ending.wait(LOOK_EVERY)
    return _ended(second)


def mark(journal: Path) -> Path:
    """Name the file that says when the agent was killed."""
    return journal.with_name(f"{journal.name}.killed")


def entries_of(journal: Path) -> list[Entry]:
    """Read a journal that may not be there yet."""
    try:
        return read_entries(journal.read_bytes())[1]
    except OSError:
        return []


class _HalfWay:
    """Knows from the journal when it is time."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._begun: float | None = None

    def reached(self) -> bool:
        entries = entries_of(self._journal)
        if self._begun is None and any(isinstance(entry, Begun) for entry in entries):
            self._begun = monotonic()
        waited = self._begun is not None and monotonic() - self._begun > A_MOMENT
        return waited or any(isinstance(entry, ProgramRunning) for entry in entries)


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the agent, which gets the signal too."""
    return max(0, process.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
