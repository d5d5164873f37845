"""The measured versions of forewarn: this one, and optionally another clone."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of forewarn, with its Python."""

    name: str
    python: str

    @property
    def forewarn(self) -> tuple[str, ...]:
        """The command without its arguments."""
        return (self.python, "-m", "forewarn")

    def counted(self, socket: Path) -> tuple[str, ...]:
        """The command that counts its SQL, with `counted_server`."""
        return (self.python, str(Path(__file__).with_name("counted_server.py")), str(socket))


PRESENT = Version(name="now", python=sys.executable)


def version_in(folder: Path) -> Version:
    """Return the version of a clone. `make setup` must have been run in it."""
    python = folder.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        raise Failed(f"{python} does not exist: run make setup in {folder}")
    return Version(name="before", python=str(python))
