"""The journal on disk: one fsynced line for each entry.

The first line names the machine, so that an agent on a copied disk detects a foreign journal. An incomplete
last line, after a crash, counts as not written. The reader skips other invalid lines with a warning.
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
# Above this size the journal is rewritten without closed events. An event takes about two kilobytes. With
# open events, the journal must also be twice as long as after the last rewrite.
COMPACT_BYTES = 64 * 1024


class Journal:
    """The tracked events and their file."""

    def __init__(self, path: Path, *, vm_id: str, warn: Callable[[str], None], machine: str = "") -> None:
        """Open or create a journal; move the journal of another machine aside."""
        self.path = path
        self._vm_id = vm_id
        self._machine = machine
        self._warn = warn
        self.trouble: str | None = None  # why the file cannot be written
        self.tracked_events: TrackedEvents = {}
        self._file: IO[bytes] | None = None
        self._size = 0
        self._kept = 0  # the size after the last rewrite
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self.tracked_events = self._loaded(path)
            self._rewrite()
        except OSError as error:
            raise Invalid(f"journal {path} cannot be written: {error.strerror}") from None

    def write(self, entry: Entry) -> None:
        """Write an entry to disk and apply it.

        If the disk cannot be written, the agent warns and continues with its state in memory, so that the
        machine still gets ready.
        """
        self.tracked_events = after(self.tracked_events, entry)
        try:
            self._append(as_json(entry))
            if self._size > max(COMPACT_BYTES, 2 * self._kept if self.tracked_events else 0):
                self._rewrite()
        except OSError as error:
            if self.trouble is None:
                self._warn(
                    f"journal {self.path} cannot be written, a restart would lose it: {error.strerror}"
                )
            self.trouble = str(error.strerror)

    def is_of(self, vm_id: str) -> bool:
        """Return whether the journal belongs to a machine; a machine without an id accepts any journal."""
        return vm_id in ("", self._vm_id)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _append(self, parsed: dict[str, Any]) -> None:
        if self.trouble is not None or self._file is None:
            self._rewrite()  # includes this entry and all that could not be written before
            self.trouble = None
            return
        left = memoryview(_line(parsed))
        while left:  # a nearly full disk may accept a part
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self._size = self._file.tell()

    def _rewrite(self) -> None:
        """Write all tracked events to a new file and replace the old file."""
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
                self._warn(f"journal {path}: {fault}; the damaged file is kept as {damaged}")
        # A machine without an id cannot detect a foreign journal, so it uses any.
        self._vm_id = self._vm_id or vm_id or ""
        if vm_id in (None, "", self._vm_id):
            return tracked_events
        aside = path.with_name(f"{path.name}.{_safe(vm_id)}")
        path.replace(aside)
        self._warn(f"journal {path} belongs to another machine ({vm_id}); it is kept as {aside}")
        return {}


def lock_of(path: Path) -> Path:
    """Return the lock file of a journal."""
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
        """Do nothing."""


def read(whole: bytes, *, warn: Callable[[str], None] = lambda _: None) -> tuple[str | None, TrackedEvents]:
    """Read a journal: the id of its machine, or None, and its tracked events."""
    vm_id, entries = read_entries(whole, warn=warn)
    return vm_id, replay(entries)


def machine_of(whole: bytes) -> str:
    """Read the machine's name from a journal; return "" if it has none."""
    try:
        parsed = json.loads(whole.partition(b"\n")[0])
        return str(parsed.get("machine", ""))
    except (ValueError, RecursionError, AttributeError):
        return ""


def read_entries(
    whole: bytes, *, warn: Callable[[str], None] = lambda _: None
) -> tuple[str | None, list[Entry]]:
    """Read a journal: the id of its machine, or None, and its entries."""
    lines = whole.split(b"\n")
    lines.pop()  # an incomplete line after a crash, or nothing
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
            warn(f"line {number} cannot be read and is skipped")
    return vm_id, entries


def _head(parsed: Any) -> str:
    """Read the machine's id from the first line."""
    if not isinstance(parsed, dict) or not isinstance(parsed.get("journal"), int):
        raise ValueError("no journal")  # noqa: TRY004 - callers expect ValueError
    if parsed["journal"] != FORMAT:
        raise Invalid(
            f"the journal has format {parsed['journal']}, this agent reads {FORMAT}: "
            "another version wrote it; when no event is open, move the journal away"
        )
    return str(parsed.get("vm_id", ""))


def _created(path: Path) -> IO[bytes]:
    """Create a file; replace a file or link of its name without following the link."""
    path.unlink(missing_ok=True)
    # Readable by its owner only, because it may contain output of handlers.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _line(parsed: Iterable[Any]) -> bytes:
    # A handler's reason may contain a lone surrogate, which becomes a backslash escape as in JSON.
    text = json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace") + b"\n"


def _safe(text: str | None) -> str:
    return "".join(each for each in text or "" if each.isalnum() or each == "-")[:64] or "unnamed"
