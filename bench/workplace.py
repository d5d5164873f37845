"""The environment of a benchmark: a folder, progress messages, and the versions to measure."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.versions import PRESENT, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A temporary folder, a log for progress, and the versions to measure."""

    folder: Path
    log: Callable[[str], None]
    against: Version | None = None  # an older version, for the parts that can measure one

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions to measure, this one first."""
        return (PRESENT,) if self.against is None else (PRESENT, self.against)
