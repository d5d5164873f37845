"""Following records: from memory for readers that keep up, from the store for readers that are behind.

The newest records stay in memory, so that many readers cost one query. There is no queue: a slow reader falls
behind without delaying others.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import takewhile

from forewarn.control.disclosing import disclosure_to
from forewarn.control.use_case import Context, ScopedReading
from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.errors import Unavailable
from forewarn.core.filters import Following, RecordFilter
from forewarn.core.model.record import Record
from forewarn.core.scope import Scope
from forewarn.signals import Signal
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.store import Store

# After these, the redacted copies in memory may be wrong.
_CHANGE_DISCLOSURE = frozenset({Kind.PROJECT_ADDED, Kind.PROJECT_CHANGED, Kind.PROJECT_REMOVED})
# Enough that a reader that keeps up never needs the store. Takes a few hundred kilobytes.
KEPT = 1000


@dataclass(slots=True)
class KeptRecord:
    """A record, and its redacted copy for its project once a reader has needed it."""

    whole: Record
    disclosed: Record | None = None  # lock: RecentRecords._lock; written once


class RecentRecords:
    """The newest records, and a signal for new ones."""

    def __init__(self, store: Store, *, kept: int = KEPT) -> None:
        self._store = store
        self._most = kept
        self._more = Signal()
        self._lock = threading.Lock()  # only the worker writes, and it may read without the lock
        self._kept: deque[KeptRecord] = deque()  # lock: self._lock
        # All records after this number are in memory. None: not known. Lock: self._lock.
        self._first: int | None = None
        self._last = 0  # lock: self._lock
        self._disclosure_changes = 0  # how often the redaction rules have changed; lock: self._lock
        self.closed = False  # whether followers must disconnect; set once, by the guest loop

    def close(self) -> None:
        """Disconnect all followers."""
        self.closed = True
        self._more.send()

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call a listener for every possible change, until the end of the block."""
        return self._more.listening(listener)

    def add(self, records: Sequence[Record], *, after: int, number: int) -> None:
        """Add the records saved after one number and up to another, and wake followers."""
        if not self._more.heard:
            self._forget()
            return
        with self._lock:
            self._extend(records, after=after, number=number)
        self._more.send()

    def catch_up(self) -> None:
        """Load new records from the store, and wake followers.

        Another process may have saved some of them.
        """
        if not self._more.heard:
            self._forget()
            return
        try:
            self._load()
        except Unavailable:
            self._forget()
        self._more.send()

    def after(self, number: int, wanted: RecordFilter, *, disclosed: bool = False) -> Following | None:
        """Return the records after a number, redacted or not. None: only the store can tell."""
        with self._lock:
            # Only the store knows which machines an event names.
            if self._first is None or number < self._first or wanted.machine is not None:
                return None
            newer = list(takewhile(lambda kept: kept.whole.number > number, reversed(self._kept)))
            reached = max(number, self._last)
        chosen = [kept for kept in reversed(newer) if _is_wanted(kept.whole, wanted)]
        shown = [kept.disclosed if disclosed else kept.whole for kept in chosen]
        known = tuple(record for record in shown if record is not None)
        if len(known) < len(shown):
            return None
        return Following(records=known, number=reached, more=False)

    def disclose(self, fleet: FleetQueries, project: ProjectName, *, up_to: int) -> None:
        """Redact a project's records once for all its followers.

        Only up to the number of the snapshot: newer records may follow a change of what the project may see,
        which the snapshot does not include.
        """
        with self._lock:
            changes = self._disclosure_changes
            undisclosed = [
                kept
                for kept in self._kept
                if kept.whole.project == project and kept.disclosed is None and kept.whole.number <= up_to
            ]
        disclosure = disclosure_to(fleet, project, [kept.whole for kept in undisclosed])
        shown = [(kept, disclosure.shown(kept.whole)) for kept in undisclosed]
        with self._lock:
            if changes == self._disclosure_changes:
                for kept, record in shown:
                    kept.disclosed = record

    def _load(self) -> None:
        with self._store.read() as snapshot:
            newest = snapshot.records.newest()
            if self._first is None or newest - self._last > self._most:
                with self._lock:
                    self._start_at(newest)
                return
            found = snapshot.records.following(self._last, RecordFilter(), limit=self._most + 1)
        with self._lock:
            self._extend(found.records, after=self._last, number=found.number)

    def _extend(self, records: Sequence[Record], *, after: int, number: int) -> None:
        if self._first is None or after != self._last:
            self._start_at(after)
        if any(record.kind in _CHANGE_DISCLOSURE for record in records):
            self._disclosure_changes += 1
            self._start_at(number)
            return
        self._kept.extend(
            KeptRecord(record, record if record.project is None else None) for record in records
        )
        self._last = number
        while len(self._kept) > self._most:
            self._first = self._kept.popleft().whole.number

    def _start_at(self, number: int) -> None:
        self._kept.clear()
        self._first = self._last = number

    def _forget(self) -> None:
        with self._lock:
            self._kept.clear()
            self._first = None


def _is_wanted(record: Record, wanted: RecordFilter) -> bool:
    if wanted.project is not None and record.project != wanted.project:
        return False
    if wanted.kinds and record.kind not in wanted.kinds:
        return False
    return record.kind not in wanted.without


class FollowedRecords(ScopedReading):
    """The records of a scope, in the order in which they are saved."""

    def __init__(self, context: Context, scope: Scope, *, recent: RecentRecords) -> None:
        super().__init__(context, scope)
        self._context = context
        self._recent = recent

    def disclosed_to(self, project: ProjectName | None) -> "FollowedRecords":
        """Return the same records redacted for a project; None: not redacted."""
        if project is None:
            return self
        return FollowedRecords(self._context, Scope(caller=project), recent=self._recent)

    @property
    def closed(self) -> bool:
        """Whether followers must disconnect."""
        return self._recent.closed

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call a listener for every possible change, until the end of the block."""
        return self._recent.listening(listener)

    def newest(self) -> int:
        """Return the number of the newest change in any project."""
        with self._store.read() as snapshot:
            return snapshot.records.newest()

    def missing(self, number: int) -> int | None:
        """Return the last number that pruning may have removed after this one; None if there is none."""
        with self._store.read() as snapshot:
            up_to = snapshot.records.pruning().up_to
        return up_to if number < up_to else None

    def page(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read the records after a number from the store."""
        with self._store.read() as snapshot:
            found = snapshot.records.following(number, wanted, limit=limit)
            if self.scope.caller is not None:
                self._recent.disclose(snapshot.fleet, self.scope.caller, up_to=found.number)
            return replace(found, records=tuple(self._disclosed(snapshot.fleet, found.records)))

    def recent(self, number: int, wanted: RecordFilter) -> Following | None:
        """Return the records after a number from memory; None if only the store can tell."""
        project = self.scope.project
        return self._recent.after(
            number,
            wanted if project is None else replace(wanted, project=project),
            disclosed=self.scope.caller is not None,
        )
