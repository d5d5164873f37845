"""How rehearsals are kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.rehearsal.kept_rehearsal import KeptRehearsal
from forewarn.core.words import ProjectName


class RehearsalQueries(Protocol):
    """Reads rehearsals."""

    def rehearsals(self) -> Sequence[KeptRehearsal]:
        """List all rehearsals that go on, and those that were ended for good, the latest last."""
        ...


class RehearsalChanges(Protocol):
    """Removes rehearsals."""

    def remove_rehearsal(self, project: ProjectName, rehearsal: str) -> None:
        """Forget a rehearsal."""
        ...

    def remove_ended_rehearsals(self, before: datetime) -> None:
        """Forget those that were ended for good and last asked for before a moment of real time."""
        ...
