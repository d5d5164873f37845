"""Runs an agent, kills it half-way as a crash would, and starts it again.

It is started instead of the agent.

Half-way is when the journal says that the program of a handler runs, or a moment after any handler has begun.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from forewarn.agent.journal.entries import Begun, Entry, ProgramRunning
from forewarn.agent.journal.journal_file import read_entries
from forewarn.clock import SystemClock, monotonic

LOOK_EVERY = 0.02
# The time between the begin of a handler and the start of its program.
A_MOMENT = 0.3


def main(words: Sequence[str]) -> int:
    """Take the path of the journal, then the command of the agent."""
    journal, command = Path(words[0]), words[1:]
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    first = subprocess.Popen(command)  # noqa: S603 - the agent's own command
    _wait_half_way(journal, until=lambda: ending.wait(LOOK_EVERY) or first.poll() is not None)
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
    """Return the path of the file with the time of the kill."""
    return journal.with_name(f"{journal.name}.killed")


def entries_of(journal: Path) -> list[Entry]:
    """Read a journal, which may not exist yet."""
    try:
        return read_entries(journal.read_bytes())[1]
    except OSError:
        return []


def _wait_half_way(journal: Path, *, until: Callable[[], bool]) -> None:
    begun: float | None = None
    while not until():
        entries = entries_of(journal)
        if begun is None and any(isinstance(entry, Begun) for entry in entries):
            begun = monotonic()
        if any(isinstance(entry, ProgramRunning) for entry in entries):
            return
        if begun is not None and monotonic() - begun > A_MOMENT:
            return


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the agent, which receives the signal too."""
    return max(0, process.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
