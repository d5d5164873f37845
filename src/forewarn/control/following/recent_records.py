"""The newest records, kept in memory for those who follow them, so that many readers cost one query.

A reader that is further behind reads pages from the store. Nothing is queued: a slow reader falls behind,
and holds up no other.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import NamedTuple

from forewarn.control.disclosing import disclosure_to
from forewarn.control.ports.records import Following, RecordFilter
from forewarn.control.ports.store import Snapshot, Store
from forewarn.control.signal import Signal
from forewarn.core.errors import Unavailable
from forewarn.core.model.record import Record
from forewarn.core.words import Kind, ProjectName

# What is kept was disclosed as it was allowed before.
_MAY_CHANGE_WHAT_IS_SEEN = frozenset({Kind.PROJECT_ADDED, Kind.PROJECT_CHANGED, Kind.PROJECT_REMOVED})
# Enough that a reader that keeps up never needs the store; a few hundred kilobytes.
KEPT = 1000


class KeptRecord(NamedTuple):
    """A record, as it is and as the people of its project see it."""

    whole: Record
    disclosed: Record


class RecentRecords:
    """The records saved last, and a signal that there are more."""

    def __init__(self, store: Store, *, kept: int = KEPT) -> None:
        self._store = store
        self._most = kept
        self._more = Signal()
        self._lock = threading.Lock()
        self._kept: deque[KeptRecord] = deque()
        self._first: int | None = None  # all records after it are kept; None: nothing is known
        self._last = 0
        self.closed = False  # whether followers should go

    def close(self) -> None:
        """Send all followers away."""
        self.closed = True
        self._more.send()

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have a listener called whenever there may be something new, as long as the block lasts."""
        return self._more.listening(listener)

    def catch_up(self) -> None:
        """Load what has been saved, and wake followers; on the thread that saves."""
        if not self._more.heard:
            self._forget()
            return
        try:
            self._load()
        except Unavailable:
            self._forget()
        self._more.send()

    def after(self, number: int, wanted: RecordFilter, *, disclosed: bool = False) -> Following | None:
        """Return what follows a number, as the people of a project see it or whole; None: ask the store."""
        with self._lock:
            # Which machines an event named is known to the store alone.
            if self._first is None or number < self._first or wanted.machine is not None:
                return None
            newer = list(takewhile(lambda kept: kept.whole.number > number, reversed(self._kept)))
            reached = max(number, self._last)
        chosen = tuple(
            kept.disclosed if disclosed else kept.whole
            for kept in reversed(newer)
            if _is_wanted(kept.whole, wanted)
        )
        return Following(records=chosen, number=reached, more=False)

    def _load(self) -> None:
        with self._store.read() as snapshot:
            newest = snapshot.newest()
            if self._first is None or newest - self._last > self._most:
                self._start_at(newest)
                return
            found = snapshot.following(self._last, RecordFilter(), limit=self._most + 1)
            if any(record.kind in _MAY_CHANGE_WHAT_IS_SEEN for record in found.records):
                self._start_at(found.number)
                return
            kept = _kept(snapshot, found.records)
        with self._lock:
            self._kept.extend(kept)
            self._last = found.number
            while len(self._kept) > self._most:
                self._first = self._kept.popleft().whole.number

    def _start_at(self, number: int) -> None:
        with self._lock:
            self._kept.clear()
            self._first = self._last = number

    def _forget(self) -> None:
        with self._lock:
            self._kept.clear()
            self._first = None


def _kept(snapshot: Snapshot, records: Sequence[Record]) -> list[KeptRecord]:
    """Add to records what the people of their projects see of them: one look-up for each project."""
    whose: dict[ProjectName, list[Record]] = {}
    for record in records:
        if record.project is not None:
            whose.setdefault(record.project, []).append(record)
    told = {project: disclosure_to(snapshot, project, mine) for project, mine in whose.items()}
    return [
        KeptRecord(record, record if record.project is None else told[record.project].shown(record))
        for record in records
    ]


def _is_wanted(record: Record, wanted: RecordFilter) -> bool:
    if wanted.project is not None and record.project != wanted.project:
        return False
    if wanted.kinds and record.kind not in wanted.kinds:
        return False
    return record.kind not in wanted.without
