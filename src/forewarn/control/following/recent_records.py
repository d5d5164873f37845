"""The newest records, kept in memory for those who follow them, so that many readers cost one query.

Who is further behind reads pages from the store. Nothing is queued for anybody: a slow reader falls behind,
and holds nobody up.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import takewhile

from forewarn.control.ports.records import Following, RecordFilter
from forewarn.control.ports.store import Store
from forewarn.control.signal import Bell
from forewarn.core.errors import Unavailable
from forewarn.core.model.record import Record
from forewarn.core.words import ProjectName

# Enough that a reader that keeps up never needs the store; a few hundred kilobytes.
KEPT = 1000


class Tail:
    """What happened last, and a bell that says when there is more."""

    def __init__(self, store: Store, *, kept: int = KEPT) -> None:
        self._store = store
        self._most = kept
        self._bell = Bell()
        self._lock = threading.Lock()
        self._kept: deque[Record] = deque()
        self._first: int | None = None  # all records after it are kept; None: nothing is known
        self._last = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether followers should go."""
        return self._closed

    def close(self) -> None:
        """Send all followers away."""
        self._closed = True
        self._bell.ring()

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have a listener called whenever there may be something new, as long as the block lasts."""
        return self._bell.listening(listener)

    def catch_up(self) -> None:
        """Take in what has been saved, and ring; on the thread that saves."""
        if not self._bell.heard:
            self._forget()
            return
        try:
            self._take_in()
        except Unavailable:
            self._forget()
        self._bell.ring()

    def newest(self) -> int:
        """Return the number of the newest change."""
        with self._store.read() as snapshot:
            return snapshot.newest()

    def missing(self, number: int) -> int | None:
        """Say up to which number records after this one may have been removed; None if none were."""
        with self._store.read() as snapshot:
            up_to = snapshot.pruning().up_to
        return up_to if number < up_to else None

    def page(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read what follows a number from the store."""
        with self._store.read() as snapshot:
            return snapshot.following(number, wanted, limit=limit)

    def recent(self, number: int, wanted: RecordFilter) -> Following | None:
        """Take what follows a number from memory; None if only the store can tell."""
        with self._lock:
            # Which machines an event named is known to the store alone.
            if self._first is None or number < self._first or wanted.machine is not None:
                return None
            newer = list(takewhile(lambda record: record.number > number, reversed(self._kept)))
            reached = max(number, self._last)
        chosen = tuple(record for record in reversed(newer) if _is_wanted(record, wanted))
        return Following(records=chosen, number=reached, more=False)

    def within(self, project: ProjectName | None) -> "Tail | ProjectTail":
        """Give the same for the people of a project; None: for all who may see everything."""
        return self if project is None else ProjectTail(self, project)

    def _take_in(self) -> None:
        with self._store.read() as snapshot:
            newest = snapshot.newest()
            if self._first is None or newest - self._last > self._most:
                self._start_at(newest)
                return
            found = snapshot.following(self._last, RecordFilter(), limit=self._most + 1)
        with self._lock:
            self._kept.extend(found.records)
            self._last = found.number
            while len(self._kept) > self._most:
                self._first = self._kept.popleft().number

    def _start_at(self, number: int) -> None:
        with self._lock:
            self._kept.clear()
            self._first = self._last = number

    def _forget(self) -> None:
        with self._lock:
            self._kept.clear()
            self._first = None


class ProjectTail:
    """What happened last in one project: whatever is asked for, nothing else is found."""

    def __init__(self, tail: Tail, project: ProjectName) -> None:
        self._tail = tail
        self._project = project

    def within(self, project: ProjectName | None) -> "ProjectTail":
        """Stay within the project."""
        return self

    @property
    def closed(self) -> bool:
        """Whether followers should go."""
        return self._tail.closed

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have a listener called whenever there may be something new, as long as the block lasts."""
        return self._tail.listening(listener)

    def newest(self) -> int:
        """Return the number of the newest change, whosever it was."""
        return self._tail.newest()

    def missing(self, number: int) -> int | None:
        """Say up to which number records after this one may have been removed; None if none were."""
        return self._tail.missing(number)

    def page(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read what follows a number from the store."""
        return self._tail.page(number, self._own(wanted), limit=limit)

    def recent(self, number: int, wanted: RecordFilter) -> Following | None:
        """Take what follows a number from memory; None if only the store can tell."""
        return self._tail.recent(number, self._own(wanted))

    def _own(self, wanted: RecordFilter) -> RecordFilter:
        return replace(wanted, project=self._project)


def _is_wanted(record: Record, wanted: RecordFilter) -> bool:
    if wanted.project is not None and record.project != wanted.project:
        return False
    if wanted.kinds and record.kind not in wanted.kinds:
        return False
    return record.kind not in wanted.without
