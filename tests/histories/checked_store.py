"""A store that checks every transaction against `tests/rules`."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeAlias

from sqlalchemy import select

from forewarn.core.basic_types import MachineId, OrderId
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.changes import Changes
from forewarn.core.model.record import PromiseCounts
from forewarn.core.model.slice import Slice
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store import tables
from forewarn.store.batch import Batch, Transaction
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store
from forewarn.store.writes.saving import ChangeSaving
from tests.helpers.service.harness import Service
from tests.rules import Change, violations

# The orders that were ever announced to each machine.
Announced: TypeAlias = set[tuple[OrderId, MachineId]]


class CheckedStore:
    """The real store, with a check of every transaction."""

    def __init__(self, store: Store, service: Service, announced: Announced) -> None:
        self._store = store
        self._service = service
        self._announced = announced
        self._counted: tuple[Slice, PromiseCounts] | None = None
        self.read, self.save_activity = store.read, store.save_activity

    def scoped(self, scope: Scope) -> "CheckedStore":
        assert scope == EVERYTHING
        return self

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        before = self._service.everything()
        counted = self._counted_before(before)
        saved: list[Changes] = []
        with self._store.batch() as batch:
            yield _RememberingBatch(batch, saved)
        if not saved:
            return
        after = self._service.everything()
        with self._store.read() as snapshot:
            fresh = snapshot.records.history(HistoryFilter(above=before.number, limit=1000))
            self._counted = (after, _counts(snapshot))
            _check_carried(snapshot, after)
        added = _difference(counted, self._counted[1])
        for changes in saved:
            change = Change(
                before=before,
                after=after,
                records=fresh,
                now=changes.now,
                policy=self._service.policy,
                announced=frozenset(self._announced),
                counted=added,
            )
            assert violations(change) == []
        self._announced |= {
            (event.order, named.machine) for event in after.events.values() for named in event.resources
        }

    def _counted_before(self, fleet: Slice) -> PromiseCounts:
        """Return the counts of promises; they are not read again for an unchanged fleet."""
        if self._counted is None or self._counted[0] is not fleet:
            with self._store.read() as snapshot:
                self._counted = (fleet, _counts(snapshot))
        return self._counted[1]


def _check_carried(snapshot: Snapshot, saved: Slice) -> None:
    """Compare the saved counts of machines on hosts with the machines."""
    carried = select(tables.hosts.c.name, tables.hosts.c.carried)
    # No port gives access to these counts.
    connection = snapshot.transaction.connection  # type: ignore[attr-defined]
    kept = {name: count for name, count in connection.execute(carried) if count}
    assert kept == Counter(each.destination for each in saved.machines.values() if each.destination)


def _counts(snapshot: Snapshot) -> PromiseCounts:
    months, _ = snapshot.work.promises(after=None, limit=1000)
    return reduce(PromiseCounts.plus, months, PromiseCounts())


def _difference(before: PromiseCounts, after: PromiseCounts) -> PromiseCounts:
    names = ("kept", "late", "never", "broken")
    return PromiseCounts(**{name: getattr(after, name) - getattr(before, name) for name in names})


@contextmanager
def _forgetting(saved: list[Changes]) -> Iterator[None]:
    """Forget the changes that were saved in the block if it is rolled back."""
    before = len(saved)
    try:
        yield
    except BaseException:
        del saved[before:]
        raise


class _RememberingBatch:
    """A batch that remembers the changes that it saved."""

    def __init__(self, batch: Batch, saved: list[Changes]) -> None:
        self._batch = batch
        self._saved = saved
        self.prefetch = batch.prefetch

    @contextmanager
    def savepoint(self) -> Iterator[Transaction]:
        with _forgetting(self._saved), self._batch.savepoint() as tx:
            yield _Remembering(tx, self._saved)  # type: ignore[misc]


class _Remembering:
    """A transaction that remembers the changes that it saved."""

    def __init__(self, tx: Transaction, saved: list[Changes]) -> None:
        self._tx = tx
        self._saved = saved
        self.changes = _Saving(tx.changes, saved)

    def scoped(self, scope: Scope) -> "_Remembering":
        return _Remembering(self._tx.scoped(scope), self._saved)  # type: ignore[arg-type]

    @contextmanager
    def savepoint(self) -> Iterator["_Remembering"]:
        with _forgetting(self._saved), self._tx.savepoint() as tx:
            yield _Remembering(tx, self._saved)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _Saving:
    def __init__(self, changes: ChangeSaving, saved: list[Changes]) -> None:
        self._changes = changes
        self._saved = saved
        self.save_notices = changes.save_notices

    def save(self, changes: Changes) -> Changes:
        if not changes.empty:
            self._saved.append(changes)
        return self._changes.save(changes)
