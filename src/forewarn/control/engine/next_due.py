"""When something falls due next, as far as it is known without asking the store: never later than it does."""

from collections.abc import Iterator
from datetime import datetime

from forewarn.core.policy import Policy
from forewarn.store.saved import Saved, SavedChanges


class NextDue:
    """The earliest moment at which there is something to do: as last read, or as saved since."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.at: datetime | None = None  # None: nothing will be, as far as is known
        self._unknown = True

    def read(self, at: datetime | None) -> None:
        """Take what the store says."""
        self.at, self._unknown = at, False

    def note(self, saved: Saved) -> None:
        """Take what was saved; what may have been is looked for."""
        if saved is None:
            self._unknown = True
        for each in saved or ():
            self.sooner(*_moments(each, self._policy))

    def sooner(self, *moments: datetime | None) -> None:
        """Take moments that may come before what is known."""
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
