"""The next due time, as last read or as committed since. It may be too early, but never too late."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from forewarn.core.guests import enablement
from forewarn.core.policy import Policy
from forewarn.store.saved import Saved, SavedChanges
from forewarn.store.snapshots import ReadStore


class FirstDue(NamedTuple):
    """When the next order and rollout are due, and when the next group becomes idle."""

    order: datetime | None
    rollout: datetime | None
    silent: datetime | None


NOTHING_DUE = FirstDue(None, None, None)


class NextDue:
    """The earliest time at which there is work to do."""

    def __init__(self, store: ReadStore, *, policy: Policy) -> None:
        self._store = store
        self._policy = policy
        self.at: datetime | None = None  # None: nothing is due, as far as is known
        self._unknown = True

    def look(self, now: datetime) -> FirstDue:
        """Read the next due times. This is all that a tick reads if nothing is due."""
        self.at, self._unknown = None, False  # before the read: later commits are noted
        try:
            with self._store.read() as snapshot:
                moments, absences = snapshot.due.moments(after=now), snapshot.time.absences()
        except BaseException:
            self.note(None)
            raise
        active = moments.oldest_activity
        silent = enablement.idle_at(active, absences, policy=self._policy) if active else None
        self.sooner(moments.order, moments.rollout, moments.ready, silent)
        return FirstDue(moments.order, moments.rollout, silent)

    def note(self, saved: Saved) -> None:
        """Note committed changes. After an uncertain commit, `is_reached` is true until the next `look`."""
        if saved is None:
            self._unknown = True
        for each in saved or ():
            self.sooner(*_moments(each, self._policy))

    def sooner(self, *moments: datetime | None) -> None:
        """Note times that may be earlier than the known one."""
        known = [moment for moment in (self.at, *moments) if moment is not None]
        self.at = min(known, default=None)

    def is_reached(self, now: datetime) -> bool:
        """Return whether something may be due."""
        return self._unknown or (self.at is not None and self.at <= now)


def _moments(saved: SavedChanges, policy: Policy) -> Iterator[datetime | None]:
    changes = saved.changes
    if saved.wakes:
        yield changes.now
    yield from (order.due_at for order in changes.orders)
    yield from (rollout.due_at for rollout in changes.rollouts)
    for group in changes.groups:
        yield group.ready_at if group.ready_at is None or group.ready_at > changes.now else None
        yield changes.now + policy.idle_after if group.enabled else None
