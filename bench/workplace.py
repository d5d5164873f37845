"""Where a part of the bench works, and how it says how far it is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A folder that is removed afterwards, and a voice."""

    folder: Path
    say: Callable[[str], None]
