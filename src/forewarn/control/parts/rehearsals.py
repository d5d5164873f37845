"""How rehearsals are kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.rehearsal_rules import KeptRehearsal
from forewarn.core.words import ProjectName


class RehearsalQueries(Protocol):
    """Reads rehearsals."""

    def all(self) -> Sequence[KeptRehearsal]:
        """List all rehearsals that go on, and those that were ended for good, the latest last."""
        ...


class RehearsalSaving(Protocol):
    """Saves rehearsals: all that a project's people can do."""

    def save(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        ...


class RehearsalChanges(RehearsalQueries, RehearsalSaving, Protocol):
    """Reads, saves and forgets rehearsals."""

    def remove(self, project: ProjectName, rehearsal: str) -> None:
        """Forget a rehearsal."""
        ...

    def remove_ended(self, before: datetime) -> None:
        """Forget those that were ended for good and last asked for before a moment of real time."""
        ...
