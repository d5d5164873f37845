"""The store as those see it who only read: nothing of it opens a transaction that could write."""

from contextlib import AbstractContextManager

from forewarn.control.ports.scope import Scope
from forewarn.store.snapshots import ProjectSnapshot, SqlSnapshot
from forewarn.store.sql import SqlStore


class ReadOnlyStore:
    """Everything that is kept; its connections refuse what would change something."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def read(self) -> AbstractContextManager[SqlSnapshot]:
        """Open a consistent snapshot, in which everything is seen that was answered before."""
        return self._store.read()

    def scoped(self, scope: Scope) -> "ReadOnlyStore | ReadOnlyProject":
        """Return the same store as a scope sees it."""
        return self if scope.project is None else ReadOnlyProject(self._store, scope)


class ReadOnlyProject:
    """The same, of which only what one project sees can be read."""

    def __init__(self, store: SqlStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    def read(self) -> AbstractContextManager[ProjectSnapshot]:
        """Open a consistent snapshot."""
        return self._store.read_scope(self._scope)
