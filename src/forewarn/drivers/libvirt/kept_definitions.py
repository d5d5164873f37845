"""Copies of domain definitions, by which machines of a lost host are defined elsewhere.

libvirt keeps a definition on the host of its domain alone. Where the settings name a directory, the driver
leaves copies there whenever it has looked at a host, and Recover reads them.
"""

import logging
import os
from pathlib import Path

from forewarn.drivers.libvirt.library import Declined

log = logging.getLogger(__name__)


class KeptDefinitions:
    """A directory of definitions, one file for each machine."""

    def __init__(self, directory: str) -> None:
        """Take the directory; "": none is kept."""
        self._directory = Path(directory) if directory else None

    @property
    def kept(self) -> bool:
        """Whether copies are kept at all."""
        return self._directory is not None

    def keep(self, uuid: str, xml: str) -> None:
        """Keep the definition of a domain, which may hold secrets."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(self._directory, uuid)
        if path.exists() and path.read_text() == xml:
            return
        beside = path.with_suffix(".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(xml)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def read(self, uuid: str) -> str:
        """Return the copy of a definition; Declined says what to do where there is none."""
        if self._directory is None:
            raise Declined(
                "its lost host alone has its definition: define it on its target (virsh define), then retry; "
                "[drivers.libvirt] definitions = DIRECTORY keeps copies from now on"
            )
        try:
            return self._path(self._directory, uuid).read_text()
        except OSError as error:
            raise Declined(
                f"there is no copy of its definition ({error}): "
                "define it on its target (virsh define), then retry"
            ) from error

    def _path(self, directory: Path, uuid: str) -> Path:
        return directory / f"{uuid.lower()}.xml"
