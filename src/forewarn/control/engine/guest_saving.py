"""What guests have done, on its way from memory into the store."""

from datetime import datetime

from forewarn.control.ports.guests import Activity
from forewarn.control.unsaved_notices import UnsavedNotices
from forewarn.control.use_case import Context, FleetUseCase
from forewarn.core.words import GroupName, MachineId


class GuestSaving(FleetUseCase):
    """Saves which events guests were sent at once, and which machines have polled now and then."""

    def __init__(self, context: Context, *, activity: Activity, unsaved: UnsavedNotices) -> None:
        super().__init__(context)
        self.activity = activity
        self._unsaved = unsaved
        self._saved_at: datetime | None = None
        self._groups: dict[GroupName, datetime] = {}
        self._machines: dict[MachineId, datetime] = {}

    def save_due(self, now: datetime) -> None:
        """Save what is to be saved by now."""
        self.save_sent()
        if now >= self._activity_due(now):
            self.save_activity(now)

    def next_due(self, now: datetime) -> datetime | None:
        """Return when polls are saved next; None while there are none."""
        return self._activity_due(now) if self.activity.pending() else None

    def save_sent(self) -> None:
        """Save what guests have been sent since the last time."""
        if self._unsaved.pending():
            with self._store.write():  # each transaction begins with it
                pass

    def save_activity(self, now: datetime) -> None:
        """Save which machines have polled since the last time."""
        groups, machines = self.activity.take()
        self._groups.update(groups)
        self._machines.update(machines)
        if self._groups or self._machines:
            with self._store.write() as tx:
                tx.save_activity(self._groups)
                tx.save_last_seen(self._machines)
            self._groups, self._machines = {}, {}
        self._saved_at = now

    def _activity_due(self, now: datetime) -> datetime:
        if self._saved_at is None:
            self._saved_at = now
        return self._saved_at + self._policy.save_activity_every
