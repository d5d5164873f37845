"""A store as the people of one project see it."""

from contextlib import AbstractContextManager

from forewarn.control.ports.store import Snapshot, Store, Transaction
from forewarn.core.words import ProjectName


class ProjectStore:
    """A store in which only one project's things are found."""

    def __init__(self, store: Store, project: ProjectName) -> None:
        self._store = store
        self._project = project

    def read(self, *, project: ProjectName | None = None) -> AbstractContextManager[Snapshot]:
        """Open a snapshot for the project; a wish for another one changes nothing."""
        return self._store.read(project=self._project)

    def write(self, *, project: ProjectName | None = None) -> AbstractContextManager[Transaction]:
        """Open a transaction for the project; a wish for another one changes nothing."""
        return self._store.write(project=self._project)
