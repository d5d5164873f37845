"""Copies of domain definitions, by which machines of a lost host are defined elsewhere.

libvirt keeps a definition on the host of its domain alone. Where the settings name a directory, the driver
leaves copies there: when it begins a step and when a machine has come to another host, soon after libvirt
has told of a change, and now and then of all. Recover reads the copy that was made on the lost host, and no
other.
"""

import os
import re
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from forewarn.core.words import HostName
from forewarn.drivers.libvirt.library import Declined

# A copy whose host has not had the domain for so long is of no use any more, and may hold secrets.
UNUSED_FOR = timedelta(days=1)
_MADE_ON = re.compile(r"<!-- on (\S+) -->\n")


class KeptDefinitions:
    """A directory of definitions, one file for each machine."""

    def __init__(self, directory: str) -> None:
        """Take the directory; "": none is kept."""
        self._directory = Path(directory) if directory else None

    @property
    def kept(self) -> bool:
        """Whether copies are kept at all."""
        return self._directory is not None

    def keep(self, uuid: str, xml: str, *, host: HostName) -> None:
        """Keep the definition that a domain has on a host; it may hold secrets."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(self._directory, uuid)
        # As a comment, so that a person can define the domain by the file as it is.
        text = f"<!-- on {_quoted(host)} -->\n{xml}"
        if path.exists() and path.read_text() == text:
            os.utime(path)
            return
        beside = path.with_suffix(".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def read(self, uuid: str, *, host: HostName | None) -> str:
        """Return the copy of the definition on a lost host; Declined says what to do where there is none."""
        if self._directory is None:
            raise Declined(
                "its lost host alone has its definition: define it on its target (virsh define), then retry; "
                "[drivers.libvirt] definitions = DIRECTORY keeps copies from now on"
            )
        path = self._path(self._directory, uuid)
        try:
            text = path.read_text()
        except OSError as error:
            raise Declined(
                f"there is no copy of its definition ({error}): "
                "define it on its target (virsh define), then retry"
            ) from error
        made_on = _made_on(text)
        if made_on is not None and host is not None and made_on != host:
            raise Declined(
                f"the copy of its definition ({path}) was made on {made_on}, before it came to {host}: "
                "define it on its target as it should be (virsh define), then retry"
            )
        return text

    def forget(self, uuid: str) -> None:
        """Remove the copy of a domain that is no more."""
        if self._directory is not None:
            self._path(self._directory, uuid).unlink(missing_ok=True)

    def prune(self, host: HostName, known: Collection[str], *, now: datetime) -> None:
        """Remove the copies that were made on a host of domains which it has not had for long."""
        if self._directory is None or not self._directory.is_dir():
            return
        oldest = (now - UNUSED_FOR).timestamp()
        wanted = {uuid.lower() for uuid in known}
        for path in self._directory.glob("*.xml"):
            with suppress(OSError):
                old = path.stem not in wanted and path.stat().st_mtime < oldest
                if old and _made_on(path.read_text()) == host:
                    path.unlink()

    def _path(self, directory: Path, uuid: str) -> Path:
        return directory / f"{uuid.lower()}.xml"


def _quoted(host: HostName) -> str:
    return quote(host, safe="").replace("--", "-%2D")  # a comment has no two dashes


def _made_on(text: str) -> HostName | None:
    found = _MADE_ON.match(text)
    return None if found is None else HostName(unquote(found[1]))
