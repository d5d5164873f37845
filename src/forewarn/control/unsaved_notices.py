"""What guests have been sent, on its way into the store: saved before anything is decided by it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TypeVar

from forewarn.control.ports.guests import SentNotices
from forewarn.control.ports.scope import Scope
from forewarn.control.ports.store import (
    ScopedSnapshot,
    ScopedStore,
    ScopedTransaction,
    Snapshot,
    Store,
    Transaction,
)
from forewarn.core.model.slice import Sent
from forewarn.core.words import EventId, GroupName, MachineId

Tx = TypeVar("Tx", bound=ScopedTransaction)


class UnsavedNotices:
    """What guests have been sent and no transaction has saved yet."""

    def __init__(self, sent: SentNotices) -> None:
        self._sent = sent
        self._unsaved: dict[EventId, dict[MachineId, datetime]] = {}
        self._open = 0  # transactions, one within the other

    def pending(self) -> bool:
        """Return whether there is anything to save."""
        self._collect()
        return bool(self._unsaved)

    @contextmanager
    def saved_first(self, opened: AbstractContextManager[Tx]) -> Iterator[Tx]:
        """Save them when a transaction begins; what one that is undone has lost, the next one saves."""
        self._collect()
        saved = dict(self._unsaved)
        self._open += 1
        try:
            with opened as tx:
                tx.save_notices(saved)
                yield tx
        finally:
            self._open -= 1
        if not self._open:  # else they may still be undone with the whole
            self._unsaved = {
                event: machines
                for event, machines in self._unsaved.items()
                if saved.get(event) is not machines
            }

    def notices(self, snapshot: ScopedSnapshot, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, saved or not."""
        self._collect()
        saved = snapshot.notices(events)
        return {event: self._unsaved.get(event, {}) | dict(saved.get(event, {})) for event in events}

    def _collect(self) -> None:
        if self._sent.has_sent():
            for event, machines in self._sent.take_sent().items():
                # The first one counts, also before it is saved.
                self._unsaved[event] = dict(machines) | self._unsaved.get(event, {})


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
        return self._unsaved.saved_first(self._store.write())

    def joining(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that all which are opened within the block are part of."""
        return self._unsaved.saved_first(self._store.joining())

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
        return self._unsaved.saved_first(self._store.write())
