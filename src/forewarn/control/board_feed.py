"""What changed: the way from what is saved to what boards show, and to those who follow records.

What this process saves is handed on as it was saved. What it did not save itself, or does not know whether
it did, is read: everything after the number that the boards have, so that nothing is missed whatever
happened between.
"""

import threading
from collections.abc import Callable, Sequence

from forewarn.control.followed_records import RecentRecords
from forewarn.core.feed import Delta
from forewarn.store.saved import Saved, SavedChanges, records_of
from forewarn.store.sql import Store


class BoardFeed:
    """Hands each change to the boards once; `publish` returns when they show it."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[Sequence[Delta]], None],
        *,
        recent: RecentRecords,
        number: int = 0,
    ) -> None:
        """Begin after a number that the boards have already."""
        self._store = store
        self._publish = publish
        self._recent = recent
        self._number = number  # that the boards have
        self._lock = threading.Lock()
        self._saved: list[SavedChanges] = []  # and they have not
        self._reached = number  # with those
        self._gap = False  # whether something may have been saved that is not among those

    def note(self, saved: Saved) -> None:
        """Take what was saved, on the thread that saved it."""
        with self._lock:
            if saved is None:
                self._gap = True
                return
            for each in saved:
                self._gap = self._gap or each.before != self._reached
                self._reached = each.number
                self._saved.append(each)

    def look_for(self, number: int) -> None:
        """Have everything read up to a number that the store has reached, if that was not noted.

        Commands that make tokens save them by themselves, also while a server runs.
        """
        with self._lock:
            self._gap = self._gap or number > self._reached

    def catch_up(self) -> None:
        """Hand on all that has been saved since the last time."""
        with self._lock:
            gap, self._gap = self._gap, False
            saved, self._saved = self._saved, []
            reached = self._reached
        try:
            if gap:
                self._read_on()
            elif saved:
                self._hand_on(saved, reached)
        except BaseException:
            self._gap = True
            raise

    def _hand_on(self, saved: Sequence[SavedChanges], reached: int) -> None:
        deltas = [_delta(each) for each in saved if _concerns_boards(each)]
        if deltas:
            self._publish(deltas)
        before, self._number = self._number, reached
        if reached > before:
            self._recent.add(records_of(saved), after=before, number=reached)

    def _read_on(self) -> None:
        with self._store.read() as snapshot:
            delta = snapshot.feed.since(self._number)
        if delta.number > self._number:
            self._publish([delta])
            self._number = delta.number
            self._recent.catch_up()
        with self._lock:
            # What was noted meanwhile is in it, or comes after it.
            self._saved = [each for each in self._saved if each.number > self._number]
            self._reached = max(self._number, *(each.number for each in self._saved), 0)


def _concerns_boards(saved: SavedChanges) -> bool:
    changes = saved.changes
    return bool(
        changes.groups
        or changes.machines
        or changes.events
        or changes.removed_groups
        or changes.removed_machines
    )


def _delta(saved: SavedChanges) -> Delta:
    changes = saved.changes
    return Delta(
        number=saved.number,
        groups=changes.groups,
        events={},
        changed_events=changes.events,
        machines=changes.machines,
        removed_groups=changes.removed_groups,
        removed_machines=changes.removed_machines,
    )
