"""Reading rehearsals."""

from collections.abc import Sequence

from forewarn.core.rehearsal.kept_rehearsal import KeptRehearsal
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import REHEARSALS

_R = tables.rehearsals.c
_OLDEST_FIRST = REHEARSALS.select().order_by(_R.renewed_at, _R.project, _R.id)


class RehearsalReads(Reader):
    """What can be asked about rehearsals."""

    def rehearsals(self) -> Sequence[KeptRehearsal]:
        """List all rehearsals that go on, and those that were ended for good, the latest last."""
        return self._list(REHEARSALS.read, _OLDEST_FIRST)
