"""What guests have done, on its way from memory into the store."""

from datetime import datetime

from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.store.batch import Transaction


class GuestSaving(UseCase):
    """Saves which events guests were sent at once, and which machines have polled now and then."""

    def __init__(self, context: EngineContext, *, polls: UnsavedPolls, unsaved: UnsavedNotices) -> None:
        super().__init__(context)
        self._activity_store = context.store
        self._transact = context.transact
        self.polls = polls
        self._unsaved = unsaved
        self._saved_at: datetime | None = None

    def save_due(self, now: datetime) -> bool:
        """Save what is to be saved by now, but only a part of many polls; return whether more are left."""
        self.save_sent()
        if now >= self._polls_due(now):
            self.polls.collect()
            self._saved_at = now
        if self.polls.half_saved:
            self.polls.save_some(self._activity_store)
        return self.polls.half_saved

    def next_due(self, now: datetime) -> datetime | None:
        """Return when polls are saved next; None while there are none."""
        if self.polls.half_saved:
            return now
        return self._polls_due(now) if self.polls.pending() else None

    def save_sent(self) -> None:
        """Save what guests have been sent since the last time."""
        if self._unsaved.pending():
            self._transact(_only_notices)

    def save_polls(self, now: datetime) -> None:
        """Save all polls that there are."""
        self.polls.collect()
        self._saved_at = now
        while self.polls.half_saved:
            self.polls.save_some(self._activity_store)

    def _polls_due(self, now: datetime) -> datetime:
        if self._saved_at is None:
            self._saved_at = now
        return self._saved_at + self._policy.save_activity_every


def _only_notices(_: Transaction) -> None:
    """Save nothing else: each transaction begins by saving the notices that guests were sent."""
