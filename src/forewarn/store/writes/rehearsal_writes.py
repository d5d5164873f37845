"""Writing rehearsals."""

from datetime import datetime

from sqlalchemy import bindparam, delete

from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.times import micros

_R = tables.rehearsals.c
_REMOVE = delete(tables.rehearsals).where(_R.project == bindparam("of"), _R.id == bindparam("which"))
_REMOVE_ENDED = delete(tables.rehearsals).where(
    _R.ended_by != "", _R.renewed_at < bindparam("before", type_=tables.TIME)
)


class RehearsalWrites(Reader):
    """What is removed of rehearsals."""

    def remove_rehearsal(self, project: ProjectName, rehearsal: str) -> None:
        """Forget a rehearsal."""
        self._connection.execute(_REMOVE, {"of": project, "which": rehearsal})

    def remove_ended_rehearsals(self, before: datetime) -> None:
        """Forget those that were ended for good and last asked for before a moment of real time."""
        self._connection.execute(_REMOVE_ENDED, {"before": micros(before)})
