"""Records in the order in which they happened, for whoever follows them."""

from sqlalchemy import ColumnElement, func, select

from forewarn.control.ports.records import Following, RecordFilter
from forewarn.core.retention import Pruning
from forewarn.store import tables
from forewarn.store.reads.lists import concerns
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.fleet_rows import name_key
from forewarn.store.rows.work_rows import RECORD_COLUMNS, record_of

_R = tables.records.c


class RecordTail(Reader):
    """What came after some number."""

    def newest(self) -> int:
        """Return the number of the newest change."""
        return self._meta.number

    def pruning(self) -> Pruning:
        """Say how far old records have been removed."""
        return self._meta.pruning

    def following(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read records after a number, oldest first."""
        newest = self.newest()
        query = self._mine(select(*RECORD_COLUMNS).where(*_conditions(number, wanted)), _R.project)
        rows = self._all(query.order_by(_R.number).limit(limit))
        records = tuple(record_of(row) for row in rows)
        more = len(records) == limit
        # Where a filter leaves nothing over, what it left out need not be looked at again.
        reached = records[-1].number if more else max(number, newest)
        return Following(records=records, number=reached, more=more)

    def count_following(self, number: int, wanted: RecordFilter) -> int:
        """Count the records after a number."""
        query = select(func.count()).select_from(tables.records).where(*_conditions(number, wanted))
        return int(self._connection.execute(self._mine(query, _R.project)).scalar_one())


def _conditions(number: int, wanted: RecordFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [_R.number > number]
    if wanted.project is not None:
        conditions.append(_R.project == wanted.project)
    if wanted.machine is not None:
        conditions.append(concerns(name_key(wanted.machine)))
    if wanted.kinds:
        conditions.append(_R.kind.in_(sorted(map(str, wanted.kinds))))
    if wanted.without:
        conditions.append(_R.kind.not_in(sorted(map(str, wanted.without))))
    return conditions
