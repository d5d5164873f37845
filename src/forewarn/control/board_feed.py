"""Publication of committed changes to the boards and to the readers of records.

Changes that this process has committed come from memory. After an uncertain commit, or a commit of another
process, the feed reads all changes after the boards' number from the store, so that it misses none. Only the
worker thread calls it, so there is no lock.
"""

from collections.abc import Callable, Sequence

from forewarn.control.followed_records import RecentRecords
from forewarn.core.feed import Delta
from forewarn.store.saved import Saved, SavedChanges, records_of
from forewarn.store.store import Store


class BoardFeed:
    """Publishes each change to the boards once. `publish` returns when they show it."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[Sequence[Delta]], None],
        *,
        recent: RecentRecords,
        number: int = 0,
    ) -> None:
        """Start after the number that the boards have already reached."""
        self._store = store
        self._publish = publish
        self._recent = recent
        self._number = number  # published to the boards; owner: the worker
        self._saved: list[SavedChanges] = []  # not published yet; owner: the worker
        self._reached = number  # the number of the last one of these; owner: the worker
        self._gap = False  # whether the store may have changes that are not queued; owner: the worker

    def note(self, saved: Saved) -> None:
        """Queue committed changes. None: the outcome of a commit is unknown."""
        if saved is None:
            self._gap = True
            return
        for each in saved:
            self._gap = self._gap or each.before != self._reached
            self._reached = each.number
            self._saved.append(each)

    def read_up_to(self, number: int) -> None:
        """Schedule a read of the store if it has reached a higher number than this process knows.

        The command line saves tokens itself, even while a server runs.
        """
        self._gap = self._gap or number > self._reached

    def catch_up(self) -> None:
        """Publish all changes since the last call."""
        gap, self._gap = self._gap, False
        saved, self._saved = self._saved, []
        try:
            if gap:
                self._publish_from_store()
            elif saved:
                self._publish_saved(saved, self._reached)
        except BaseException:
            self._gap = True
            raise

    def _publish_saved(self, saved: Sequence[SavedChanges], reached: int) -> None:
        deltas = [_delta(each) for each in saved if _concerns_boards(each)]
        if deltas:
            self._publish(deltas)
        before, self._number = self._number, reached
        if reached > before:
            self._recent.add(records_of(saved), after=before, number=reached)

    def _publish_from_store(self) -> None:
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
