"""What guests have been sent, on its way into the store: saved before anything is decided by it."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Protocol

from forewarn.control.ports.store import Snapshot, Store, Transaction
from forewarn.core.model.slice import Sent
from forewarn.core.words import EventId, MachineId, ProjectName


class Post(Protocol):
    """What guests are sent: known in memory first, handed over before anything is decided by it."""

    def has_sent(self) -> bool:
        """Say whether there is anything to hand over."""
        ...

    def take_sent(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        ...


class NotingStore:
    """A store each of whose transactions first saves what guests have been sent until then.

    So no event is started or ended before it is known who has been told of it. A transaction that is
    undone takes nothing with it: the next one saves it again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._post: Post | None = None
        self._unsaved: dict[EventId, dict[MachineId, datetime]] = {}

    def attend(self, post: Post) -> None:
        """Begin to save what goes out by this post; before that nobody is sent anything."""
        self._post = post

    def read(self, *, project: ProjectName | None = None) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot."""
        return self._store.read(project=project)

    @contextmanager
    def write(self, *, project: ProjectName | None = None) -> Iterator[Transaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        self._collect()
        with self._store.write(project=project) as tx:
            tx.save_notices(self._unsaved)
            yield tx
        self._unsaved = {}

    def save_sent(self) -> None:
        """Save what guests have been sent, if that is anything new."""
        self._collect()
        if self._unsaved:
            with self.write():
                pass

    def notices(self, snapshot: Snapshot, events: Iterable[EventId]) -> Sent:
        """Say when machines were first sent these events, saved or not."""
        self._collect()
        ids = list(events)
        saved = snapshot.notices(ids)
        return {event: self._unsaved.get(event, {}) | dict(saved.get(event, {})) for event in ids}

    def _collect(self) -> None:
        if self._post is None or not self._post.has_sent():
            return
        for event, machines in self._post.take_sent().items():
            # The first one counts, also before it is saved.
            self._unsaved[event] = dict(machines) | self._unsaved.get(event, {})
