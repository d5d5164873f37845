"""Notices and polls of guests, on their way from the boards into the store.

Notices are saved before anything is decided by them; polls a part at a time.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from forewarn.control.interfaces import Activity, LastPolls, SentNotices, UntakenNotices
from forewarn.core.basic_types import EventId, GroupName, MachineId
from forewarn.core.model.slice import Sent
from forewarn.store.batch import Transaction
from forewarn.store.queries.work import WorkQueries
from forewarn.store.store import Store


@dataclass(frozen=True, slots=True)
class NoticesNow:
    """What guests had been sent at some moment, and no transaction had saved yet."""

    _unsaved: Sent
    _sent: UntakenNotices  # after that

    def notices(self, work: WorkQueries, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, saved or not, by a snapshot opened since."""
        saved = work.notices(events)
        return {
            event: _first(saved.get(event, {}), self._unsaved.get(event, {}), self._sent(event))
            for event in events
        }


def _first(*known: Mapping[MachineId, datetime]) -> Mapping[MachineId, datetime]:
    """Return what is known first of each machine."""
    first: dict[MachineId, datetime] = {}
    for sent in reversed(known):
        first |= sent
    return first


class UnsavedNotices:
    """What guests have been sent and no transaction has saved yet; the worker's, but any thread may look."""

    def __init__(self, sent: SentNotices) -> None:
        self._sent = sent
        self._lock = threading.Lock()  # held while something is on its way from the boards to here
        # Lock: self._lock, for all but the worker's own reads; replaced, never changed in place.
        self._unsaved: dict[EventId, dict[MachineId, datetime]] = {}
        # The same ones, by a transaction. Owner: the worker.
        self._being_saved: dict[EventId, dict[MachineId, datetime]] = {}

    def pending(self) -> bool:
        """Return whether there is anything to save."""
        self._collect()
        return bool(self._unsaved)

    def save(self, tx: Transaction) -> None:
        """Save them in a transaction, before it decides anything.

        So no event starts or ends before it is known which machines were sent it. If the transaction is
        rolled back, the next one saves them.
        """
        if taken := self._take():
            tx.after_commit(lambda: self._forget(taken), undone=lambda: self._put_back(taken))
            tx.changes.save_notices(taken)

    def now(self) -> NoticesNow:
        """Return what is not saved by now. Any thread may ask.

        Whoever asks before it opens a snapshot misses none: each is here until the store has it.
        """
        with self._lock:
            return NoticesNow(self._unsaved, self._sent.untaken_notices())

    def _take(self) -> Sent:
        """Return what no transaction is saving yet."""
        self._collect()
        new = {
            event: machines
            for event, machines in self._unsaved.items()
            if self._being_saved.get(event) is not machines
        }
        self._being_saved |= new
        return new

    def _forget(self, saved: Sent) -> None:
        with self._lock:
            self._unsaved = {
                event: machines
                for event, machines in self._unsaved.items()
                if saved.get(event) is not machines
            }
        self._put_back(saved)

    def _put_back(self, taken: Sent) -> None:
        for event, machines in taken.items():
            if self._being_saved.get(event) is machines:
                del self._being_saved[event]

    def _collect(self) -> None:
        if not self._sent.has_notices():
            return
        with self._lock:
            unsaved = dict(self._unsaved)  # made anew: others may be looking at it
            for event, machines in self._sent.take_notices().items():
                unsaved[event] = dict(_first(unsaved.get(event, {}), machines))
            self._unsaved = unsaved


# Groups, and machines, that are saved in one transaction: it takes less time than anybody notices.
AT_ONCE = 1_000


class UnsavedPolls:
    """Polls that no transaction has saved yet, whether the boards still have them or not."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._lock = threading.Lock()  # held while something is on its way from the boards to here
        self._groups: dict[GroupName, datetime] = {}  # owner: the worker
        self._machines: dict[MachineId, datetime] = {}  # lock: self._lock, for all but the worker's own reads

    def pending(self) -> bool:
        """Return whether there is anything to hand over."""
        return self._activity.pending()

    @property
    def half_saved(self) -> bool:
        """Whether something was handed over and is not saved yet."""
        return bool(self._groups or self._machines)

    def collect(self) -> None:
        """Have the boards hand over what they have."""
        with self._lock:
            groups, machines = self._activity.take()
            self._groups.update(groups)
            self._machines.update(machines)

    def save_some(self, store: Store) -> None:
        """Save a part of what was handed over; one that cannot be saved is kept."""
        groups = dict(islice(self._groups.items(), AT_ONCE))
        machines = dict(islice(self._machines.items(), AT_ONCE))
        store.save_activity(groups, machines)
        for group in groups:
            del self._groups[group]
        with self._lock:
            for machine in machines:
                del self._machines[machine]

    def fresh(self) -> LastPolls:
        """Return the polls that are not saved by now. Any thread may ask.

        Whoever asks before it opens a snapshot misses none: each is here until the store has it.
        """
        with self._lock:
            newest, handed_over = self._activity.fresh(), self._machines.copy()

        def find(machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
            older = {machine: handed_over[machine] for machine in machines if machine in handed_over}
            return older | dict(newest(machines))

        return find
