"""What became of promises, by project and month."""

from collections.abc import Sequence

from sqlalchemy import select

from forewarn.core.model.record import MonthlyPromises
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.mapping import Row

_P = tables.promises.c
_PROMISES = select(*(column for column in _P))


class PromiseReads(Reader):
    """Promises, counted."""

    def page(
        self, *, month: str | None = None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """List what became of promises by project and month: of all months, or of one."""
        query = self._mine(_PROMISES, _P.project)
        if month is not None:
            query = query.where(_P.month == month)
        return self._page(_read, query, (_P.project, _P.month, _P.simulated), after=after, limit=limit)


def _read(row: Row) -> MonthlyPromises:
    return MonthlyPromises(**dict(zip(_P.keys(), row, strict=False)))
