"""The journal on disk: what the agent has done and begun, written before and after it does it.

A line for each entry, fsynced. The first names the machine, so that a copy of its disk is not taken for
it. A last line that was torn by a crash counts as not written; what cannot be read elsewhere is skipped with
a warning.
"""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from forewarn.agent.journal.entries import Entry, as_json, from_json
from forewarn.agent.journal.tracked_events import TrackedEvents, after, entries_of, replay
from forewarn.core.errors import Invalid
from forewarn.platform import system

FORMAT = 1
# Rewritten without what is over when it is longer than this; an event leaves about two kilobytes. While
# something is open it must also be twice as long as what was known the last time.
COMPACT_BYTES = 64 * 1024


class Journal:
    """The tracked events, and the file that they can be read from again."""

    def __init__(self, path: Path, *, vm_id: str, warn: Callable[[str], None], machine: str = "") -> None:
        """Open a journal, or begin one; one of another machine is set aside."""
        self.path = path
        self._vm_id = vm_id
        self._machine = machine
        self._warn = warn
        self.trouble: str | None = None  # why it cannot be written
        self.tracked_events: TrackedEvents = {}
        self._file: IO[bytes] | None = None
        self._size = 0
        self._kept = 0  # of that, what was left when it was last rewritten
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self.tracked_events = self._loaded(path)
            self._rewrite()
        except OSError as error:
            raise Invalid(f"journal {path} cannot be written: {error.strerror}") from None

    def write(self, entry: Entry) -> None:
        """Write an entry to disk, and apply it.

        A disk that cannot be written to does not keep the agent from getting ready: it warns, and goes on
        with what it has in memory.
        """
        self.tracked_events = after(self.tracked_events, entry)
        try:
            self._append(as_json(entry))
            if self._size > max(COMPACT_BYTES, 2 * self._kept if self.tracked_events else 0):
                self._rewrite()
        except OSError as error:
            if self.trouble is None:
                self._warn(f"journal {self.path} cannot be written, a restart would forget: {error.strerror}")
            self.trouble = str(error.strerror)

    def is_of(self, vm_id: str) -> bool:
        """Check whether it is a machine's; any journal counts as that of a machine without an id."""
        return vm_id in ("", self._vm_id)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _append(self, parsed: dict[str, Any]) -> None:
        if self.trouble is not None or self._file is None:
            self._rewrite()  # what could not be written so far, and this
            self.trouble = None
            return
        left = memoryview(_line(parsed))
        while left:  # a disk that is nearly full takes a part
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self._size = self._file.tell()

    def _rewrite(self) -> None:
        """Write all tracked events to a new file, and replace the old one with it."""
        part = self.path.with_name(f"{self.path.name}.part")
        head = {"journal": FORMAT, "vm_id": self._vm_id, "machine": self._machine}
        with _created(part) as file:
            file.writelines(
                _line(parsed) for parsed in (head, *map(as_json, entries_of(self.tracked_events)))
            )
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)
        system.sync_folder(self.path.parent)
        self.close()
        self._file = self.path.open("ab", buffering=0)
        self._size = self._kept = self._file.tell()

    def _loaded(self, path: Path) -> TrackedEvents:
        whole = path.read_bytes()
        faults: list[str] = []
        vm_id, tracked_events = read(whole, warn=faults.append)
        if faults:
            damaged = path.with_name(f"{path.name}.damaged")
            with _created(damaged) as file:
                file.write(whole)
            for fault in faults:
                self._warn(f"journal {path}: {fault}; the file as it was is kept as {damaged}")
        # A machine without an id cannot be told from another: it keeps what it finds.
        self._vm_id = self._vm_id or vm_id or ""
        if vm_id in (None, "", self._vm_id):
            return tracked_events
        aside = path.with_name(f"{path.name}.{_safe(vm_id)}")
        path.replace(aside)
        self._warn(f"journal {path} is of another machine ({vm_id}); it is kept as {aside}")
        return {}


def lock_of(path: Path) -> Path:
    """Return the file that an agent locks for as long as it uses a journal."""
    return path.with_name(f"{path.name}.lock")


class DryRunJournal:
    """The journal of a dry run, in memory."""

    def __init__(self) -> None:
        self.tracked_events: TrackedEvents = {}
        self.trouble: str | None = None

    def write(self, entry: Entry) -> None:
        """Apply an entry."""
        self.tracked_events = after(self.tracked_events, entry)

    def close(self) -> None:
        """Do nothing: there is no file."""


def read(whole: bytes, *, warn: Callable[[str], None] = lambda _: None) -> tuple[str | None, TrackedEvents]:
    """Read a journal: whose it is (None if it does not say), and its tracked events."""
    vm_id, entries = read_entries(whole, warn=warn)
    return vm_id, replay(entries)


def machine_of(whole: bytes) -> str:
    """Read the name of the machine that a journal is of; empty if it does not say."""
    try:
        parsed = json.loads(whole.partition(b"\n")[0])
        return str(parsed.get("machine", ""))
    except (ValueError, RecursionError, AttributeError):
        return ""


def read_entries(
    whole: bytes, *, warn: Callable[[str], None] = lambda _: None
) -> tuple[str | None, list[Entry]]:
    """Read a journal: whose it is, and its entries."""
    lines = whole.split(b"\n")
    lines.pop()  # what follows the last line: nothing, or what a crash has torn
    vm_id: str | None = None
    entries: list[Entry] = []
    for number, line in enumerate(lines, start=1):
        try:
            parsed = json.loads(line)
            if number == 1:
                vm_id = _head(parsed)
            else:
                entries.append(from_json(parsed))
        except (ValueError, RecursionError):
            warn(f"line {number} cannot be read: what the others say is believed, what it said is lost")
    return vm_id, entries


def _head(parsed: Any) -> str:
    """Read whose a journal is."""
    if not isinstance(parsed, dict) or not isinstance(parsed.get("journal"), int):
        raise ValueError("no journal")  # noqa: TRY004 - a line that cannot be read
    if parsed["journal"] != FORMAT:
        raise Invalid(
            f"the journal has format {parsed['journal']}, this agent reads {FORMAT}: "
            "it was written by another version; move it away once nothing is prepared"
        )
    return str(parsed.get("vm_id", ""))


def _created(path: Path) -> IO[bytes]:
    """Create a file in the place of whatever has its name; a link there is removed, never followed."""
    path.unlink(missing_ok=True)
    # Its owner's alone: what handlers printed may be in it.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _line(parsed: Iterable[Any]) -> bytes:
    # Half a character, which a handler's reason may hold, is written as JSON writes it: with a backslash.
    text = json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace") + b"\n"


def _safe(text: str | None) -> str:
    return "".join(each for each in text or "" if each.isalnum() or each == "-")[:64] or "unnamed"
