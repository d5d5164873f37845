"""What was removed: kept for readers of the feed, and forgotten when they have had time to learn of it."""

from collections.abc import Iterable

from sqlalchemy import bindparam, delete, select

from forewarn.core.model.changes import Changes
from forewarn.store import tables
from forewarn.store.many_rows import execute_many
from forewarn.store.reads.name_reads import REMOVED_HOSTS
from forewarn.store.reads.reader import Reader
from forewarn.store.writes.writer import put_rows

# What is told by the feed. Names of removed hosts are kept: reasons in old records have them.
TOLD = ("machines", "groups")
# Those who follow the feed are seldom more than some numbers behind; one that is further reads all again.
KEPT_NUMBERS = 100_000
# So that to remove one machine never takes long. More come to be forgotten than are removed meanwhile.
MOST_AT_ONCE = 1_000

_T = tables.tombstones.c
_OLDEST = (
    select(_T.key, _T.number)
    .where(_T.kind == bindparam("of"), _T.number <= bindparam("up_to"))
    .order_by(_T.number)
    .limit(MOST_AT_ONCE)
)
_FORGET = delete(tables.tombstones).where(_T.kind == bindparam("of"), _T.key == bindparam("gone"))


class Tombstones(Reader):
    """Writes what was removed."""

    def bury(self, changes: Changes, *, number: int) -> int:
        """Keep what is removed, and forget what was long ago; return up to which number that may be so."""
        forgotten = self._meta.forgotten
        machines = [machine.lower() for machine in changes.removed_machines]
        self._leave("machines", machines, number=number)
        self._leave("groups", changes.removed_groups, number=number)
        self._leave(REMOVED_HOSTS, changes.removed_hosts, number=number)
        if changes.removed_machines or changes.removed_groups:
            forgotten = max(forgotten, *(self._forget(kind, up_to=number - KEPT_NUMBERS) for kind in TOLD))
        return forgotten

    def _leave(self, kind: str, keys: Iterable[str], *, number: int) -> None:
        rows = [{"kind": kind, "key": key, "number": number} for key in keys]
        put_rows(self._connection, tables.tombstones, rows)

    def _forget(self, kind: str, *, up_to: int) -> int:
        """Forget the oldest removals of a kind; return the number of the newest of them."""
        rows = self._all(_OLDEST, {"of": kind, "up_to": up_to})
        if rows:
            execute_many(self._connection, _FORGET, [{"of": kind, "gone": key} for key, _ in rows])
        return max((number for _, number in rows), default=0)
