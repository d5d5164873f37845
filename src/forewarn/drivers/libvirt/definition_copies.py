"""Copies of domain definitions, from which Recover defines the machines of a lost host on another host.

libvirt keeps a definition only on the domain's host. If the settings name a directory, the driver copies
definitions there: when it begins a step, when a machine has moved, after libvirt reports a change, and all of
them at intervals. Recover reads the copy that was made on the lost host and no other.
"""

import os
import re
import threading
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.library import LibvirtRefused

# A copy may contain secrets. It is deleted if its host has not had the domain for this long.
UNUSED_FOR = timedelta(days=1)
_MADE_ON = re.compile(r"<!-- on (\S+) -->\n")


class DefinitionCopies:
    """A directory with one file for each machine."""

    def __init__(self, directory: str) -> None:
        """Take the directory; with "", no copies are made."""
        self._directory = Path(directory) if directory else None
        self._writing = threading.Lock()  # held while a thread writes a copy

    @property
    def enabled(self) -> bool:
        """Whether copies are made."""
        return self._directory is not None

    def write(self, uuid: str, xml: str, *, host: HostName) -> None:
        """Copy the definition of a domain on a host; it may contain secrets."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = _path(self._directory, uuid)
        # A comment, so that `virsh define` accepts the file unchanged. A comment cannot contain two dashes.
        made_on = quote(host, safe="").replace("--", "-%2D")
        text = f"<!-- on {made_on} -->\n{xml}"
        if path.exists() and path.read_text() == text:
            os.utime(path)
            return
        new = path.with_suffix(".new")
        with self._writing:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)

    def read(self, uuid: str, *, host: HostName | None) -> str:
        """Return the definition of a domain on a lost host; LibvirtRefused tells what to do without it."""
        if self._directory is None:
            raise LibvirtRefused(
                "only the lost host has its definition: define it on its target (virsh define), then retry; "
                "set [drivers.libvirt] definitions = DIRECTORY to copy definitions from now on"
            )
        path = _path(self._directory, uuid)
        try:
            text = path.read_text()
        except OSError as error:
            raise LibvirtRefused(
                f"there is no copy of its definition ({error}): "
                "define it on its target (virsh define), then retry"
            ) from error
        made_on = _made_on(text)
        if made_on is not None and host is not None and made_on != host:
            raise LibvirtRefused(
                f"the copy of its definition ({path}) was made on {made_on}, before it moved to {host}: "
                "define it on its target (virsh define), then retry"
            )
        return text

    def forget(self, uuid: str) -> None:
        """Delete the copy of a domain."""
        if self._directory is not None:
            _path(self._directory, uuid).unlink(missing_ok=True)

    def prune(self, host: HostName, known: Collection[str], *, now: datetime) -> None:
        """Delete the old copies of a host's former domains."""
        if self._directory is None or not self._directory.is_dir():
            return
        oldest = (now - UNUSED_FOR).timestamp()
        wanted = {uuid.lower() for uuid in known}
        for path in self._directory.glob("*.xml"):
            with suppress(OSError):
                old = path.stem not in wanted and path.stat().st_mtime < oldest
                if old and _made_on(path.read_text()) == host:
                    path.unlink()


def _path(directory: Path, uuid: str) -> Path:
    return directory / f"{uuid.lower()}.xml"


def _made_on(text: str) -> HostName | None:
    found = _MADE_ON.match(text)
    return None if found is None else HostName(unquote(found[1]))
