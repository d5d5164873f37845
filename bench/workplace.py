"""Where a part of the bench works, and how it says how far it is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.versions import PRESENT, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A folder that is removed afterwards, and a voice."""

    folder: Path
    say: Callable[[str], None]
    against: Version | None = None  # an older version, for the parts that can measure one

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions to be measured, the present one first."""
        return (PRESENT,) if self.against is None else (PRESENT, self.against)
