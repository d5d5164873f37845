"""What changed: the way from what is saved to what boards show, and to those who follow records.

What this process saves is handed on as it was saved. What it did not save itself, or does not know whether
it did, is read: everything after the number that the boards have, so that nothing is missed whatever
happened between. The worker saves, and it alone calls all this: there is no lock.
"""

from collections.abc import Callable, Sequence

from forewarn.control.followed_records import RecentRecords
from forewarn.core.feed import Delta
from forewarn.store.saved import Saved, SavedChanges, records_of
from forewarn.store.store import Store


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
        self._number = number  # that the boards have; owner: the worker
        self._saved: list[SavedChanges] = []  # and they have not; owner: the worker
        self._reached = number  # with those; owner: the worker
        self._gap = False  # whether something may have been saved that is not among those; owner: the worker

    def note(self, saved: Saved) -> None:
        """Take what was saved, on the thread that saved it."""
        if saved is None:
            self._gap = True
            return
        for each in saved:
            self._gap = self._gap or each.before != self._reached
            self._reached = each.number
            self._saved.append(each)

    def read_up_to(self, number: int) -> None:
        """Have everything read up to a number that the store has reached, if that was not noted.

        Commands that make tokens save them by themselves, also while a server runs.
        """
        self._gap = self._gap or number > self._reached

    def catch_up(self) -> None:
        """Hand on all that has been saved since the last time."""
        gap, self._gap = self._gap, False
        saved, self._saved = self._saved, []
        try:
            if gap:
                self._read_on()
            elif saved:
                self._hand_on(saved, self._reached)
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
        self._reached = self._number


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
