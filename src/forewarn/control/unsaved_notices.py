"""What guests have been sent, on its way into the store: saved before anything is decided by it."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from forewarn.control.parts.work import WorkQueries
from forewarn.control.ports.guests import SentNotices, SentSoFar
from forewarn.control.ports.scope import Scope
from forewarn.control.ports.store import (
    Act,
    ScopedSnapshot,
    ScopedStore,
    ScopedTransaction,
    Snapshot,
    Store,
    Together,
    Transaction,
)
from forewarn.core.model.slice import Sent
from forewarn.core.words import EventId, GroupName, MachineId

Tx = TypeVar("Tx", bound=ScopedTransaction)


@dataclass(frozen=True, slots=True)
class NoticesNow:
    """What guests had been sent at some moment, and no transaction had saved yet."""

    _unsaved: Sent
    _sent: SentSoFar  # after that

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
        self._unsaved: dict[EventId, dict[MachineId, datetime]] = {}
        self._being_saved: dict[EventId, dict[MachineId, datetime]] = {}  # the same ones, by a transaction

    def pending(self) -> bool:
        """Return whether there is anything to save."""
        self._collect()
        return bool(self._unsaved)

    @contextmanager
    def saved_first(self, store: ScopedStore, opened: AbstractContextManager[Tx]) -> Iterator[Tx]:
        """Save them when a transaction begins; what one that is undone has lost, the next one saves."""
        with opened as tx:
            if taken := self._take():
                store.after_saving(lambda: self._forget(taken), undone=lambda: self._put_back(taken))
                tx.changes.save_notices(taken)
            yield tx

    def now(self) -> NoticesNow:
        """Return what is not saved by now. Any thread may ask.

        Whoever asks before it opens a snapshot misses none: each is here until the store has it.
        """
        with self._lock:
            return NoticesNow(self._unsaved, self._sent.sent_so_far())

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
        if not self._sent.has_sent():
            return
        with self._lock:
            unsaved = dict(self._unsaved)  # made anew: others may be looking at it
            for event, machines in self._sent.take_sent().items():
                unsaved[event] = dict(_first(unsaved.get(event, {}), machines))
            self._unsaved = unsaved


class NoticeSavingStore:
    """A store each of whose transactions first saves what guests have been sent until then.

    So no event is started or ended before it is known which machines were sent it.
    """

    def __init__(self, store: Store, unsaved: UnsavedNotices) -> None:
        self._store = store
        self._unsaved = unsaved

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot."""
        return self._store.read()

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a transaction."""
        return self._unsaved.saved_first(self._store, self._store.write())

    def together(self) -> AbstractContextManager[Together]:
        """Save what this thread saves within the block together."""
        return self._store.together()

    def after_saving(self, saved: Act, *, undone: Act = lambda: None) -> None:
        """Do something once what this thread is saving is saved, or something else once it is undone."""
        self._store.after_saving(saved, undone=undone)

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled: what they were sent can wait."""
        self._store.save_activity(groups, machines)

    def scoped(self, scope: Scope) -> ScopedStore:
        """Return the same store as a scope sees it."""
        return _Scoped(self._store.scoped(scope), self._unsaved)


class _Scoped:
    def __init__(self, store: ScopedStore, unsaved: UnsavedNotices) -> None:
        self._store = store
        self._unsaved = unsaved

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        return self._store.read()

    def write(self) -> AbstractContextManager[ScopedTransaction]:
        return self._unsaved.saved_first(self._store, self._store.write())

    def after_saving(self, saved: Act, *, undone: Act = lambda: None) -> None:
        self._store.after_saving(saved, undone=undone)
