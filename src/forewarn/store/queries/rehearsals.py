"""Rehearsals."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete

from forewarn.core.rehearsal_rules import KeptRehearsal
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import REHEARSALS
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import put

_R = tables.rehearsals.c
_OLDEST_FIRST = REHEARSALS.select().order_by(_R.renewed_at, _R.project, _R.id)
_REMOVE = delete(tables.rehearsals).where(_R.project == bindparam("of"), _R.id == bindparam("which"))
_REMOVE_ENDED = delete(tables.rehearsals).where(
    _R.ended_by != "", _R.renewed_at < bindparam("before", type_=tables.TIME)
)


class RehearsalQueries(Reader):
    """What can be asked about rehearsals."""

    def all(self) -> Sequence[KeptRehearsal]:
        """List all rehearsals that go on, and those that were ended for good, the latest last."""
        return self._list(REHEARSALS.read, _OLDEST_FIRST)


class RehearsalSaving(Reader):
    """What can be changed for a project: its own rehearsal is known to who has it."""

    def save(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        put(self._connection, REHEARSALS, [rehearsal])


class RehearsalChanges(RehearsalQueries, RehearsalSaving):
    """All rehearsals, and what can be changed of them."""

    def save(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        put(self._connection, REHEARSALS, [rehearsal])

    def remove(self, project: ProjectName, rehearsal: str) -> None:
        """Forget a rehearsal."""
        self._connection.execute(_REMOVE, {"of": project, "which": rehearsal})

    def remove_ended(self, before: datetime) -> None:
        """Forget those that were ended for good and last asked for before a moment of real time."""
        self._connection.execute(_REMOVE_ENDED, {"before": micros(before)})
