"""The versions of forewarn that are measured: this one, and perhaps another that lies beside it."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version that can be started."""

    name: str
    python: str

    @property
    def forewarn(self) -> tuple[str, ...]:
        """The command, but for its arguments."""
        return (self.python, "-m", "forewarn")

    def counted(self, socket: Path) -> tuple[str, ...]:
        """The same with its SQL counted, as `counted_server` does."""
        return (self.python, str(Path(__file__).with_name("counted_server.py")), str(socket))


PRESENT = Version(name="now", python=sys.executable)


def version_in(folder: Path) -> Version:
    """Find the version of a clone that `make setup` was run in."""
    python = folder.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        raise Failed(f"{python} does not exist: run make setup in {folder}")
    return Version(name="before", python=str(python))
