"""Notices and polls of guests between the boards and the store.

Notices are saved before any decision that uses them. Polls are saved from time to time, in chunks.
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
class NoticeSnapshot:
    """The unsaved notices at one moment."""

    _unsaved: Sent
    _sent: UntakenNotices  # newer ones, still on the boards

    def notices(self, work: WorkQueries, events: Sequence[EventId]) -> Sent:
        """Return when machines first received these events. The snapshot must be newer than this object."""
        saved = work.notices(events)
        return {
            event: _first(saved.get(event, {}), self._unsaved.get(event, {}), self._sent(event))
            for event in events
        }


def _first(*known: Mapping[MachineId, datetime]) -> Mapping[MachineId, datetime]:
    """Merge times by machine; the first mapping that has a machine wins."""
    first: dict[MachineId, datetime] = {}
    for sent in reversed(known):
        first |= sent
    return first


class UnsavedNotices:
    """Notices that no transaction has saved yet. The worker saves them; any thread may read them."""

    def __init__(self, sent: SentNotices) -> None:
        self._sent = sent
        self._lock = threading.Lock()  # held while notices move from the boards to here
        # Lock: self._lock, except for reads of the worker. Replaced, never changed in place.
        self._unsaved: dict[EventId, dict[MachineId, datetime]] = {}
        # Notices that an open transaction is saving. Owner: the worker.
        self._being_saved: dict[EventId, dict[MachineId, datetime]] = {}

    def pending(self) -> bool:
        """Return whether there are notices to save."""
        self._collect()
        return bool(self._unsaved)

    def save(self, tx: Transaction) -> None:
        """Save the notices in a transaction, before it decides anything.

        The decision to start or end an event then knows which machines have received it. After a rollback,
        the next transaction saves the notices.
        """
        if taken := self._take():
            tx.after_commit(lambda: self._forget(taken), undone=lambda: self._put_back(taken))
            tx.changes.save_notices(taken)

    def now(self) -> NoticeSnapshot:
        """Return the unsaved notices. Any thread may call it.

        Call it before opening a snapshot, so that none is missed: each notice stays here until the store has
        it.
        """
        with self._lock:
            return NoticeSnapshot(self._unsaved, self._sent.untaken_notices())

    def _take(self) -> Sent:
        """Return the notices that no transaction is saving."""
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
            unsaved = dict(self._unsaved)  # a copy, because other threads may be reading the old one
            for event, machines in self._sent.take_notices().items():
                unsaved[event] = dict(_first(unsaved.get(event, {}), machines))
            self._unsaved = unsaved


# Groups, and machines, per transaction. More would noticeably delay other callers.
AT_ONCE = 1_000


class UnsavedPolls:
    """Polls that no transaction has saved yet, including those still on the boards."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._lock = threading.Lock()  # held while polls move from the boards to here
        self._groups: dict[GroupName, datetime] = {}  # owner: the worker
        self._machines: dict[MachineId, datetime] = {}  # lock: self._lock, except for reads of the worker

    def pending(self) -> bool:
        """Return whether the boards have new polls."""
        return self._activity.pending()

    @property
    def has_unsaved(self) -> bool:
        """Whether some collected polls are not saved yet."""
        return bool(self._groups or self._machines)

    def collect(self) -> None:
        """Move the new polls from the boards to here."""
        with self._lock:
            groups, machines = self._activity.take()
            self._groups.update(groups)
            self._machines.update(machines)

    def save_some(self, store: Store) -> None:
        """Save a chunk of the collected polls. They are kept if saving fails."""
        groups = dict(islice(self._groups.items(), AT_ONCE))
        machines = dict(islice(self._machines.items(), AT_ONCE))
        store.save_activity(groups, machines)
        for group in groups:
            del self._groups[group]
        with self._lock:
            for machine in machines:
                del self._machines[machine]

    def fresh(self) -> LastPolls:
        """Return the unsaved polls. Any thread may call it.

        Call it before opening a snapshot, so that none is missed: each poll stays here until the store has
        it.
        """
        with self._lock:
            newest, collected = self._activity.fresh(), self._machines.copy()

        def find(machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
            older = {machine: collected[machine] for machine in machines if machine in collected}
            return older | dict(newest(machines))

        return find
