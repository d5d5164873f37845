"""Following records: from memory while a reader keeps up, from the store when it is behind."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from forewarn.control.following.recent_records import RecentRecords
from forewarn.control.use_case import ReadingContext, ScopedReading
from forewarn.core.copies import replace
from forewarn.core.filters import Following, RecordFilter
from forewarn.core.scope import Scope
from forewarn.core.words import ProjectName


class FollowedRecords(ScopedReading):
    """The records of a scope, as they are saved."""

    def __init__(self, context: ReadingContext, scope: Scope, *, recent: RecentRecords) -> None:
        super().__init__(context, scope)
        self._context = context
        self._recent = recent

    def disclosed_to(self, project: ProjectName | None) -> "FollowedRecords":
        """Return the same as the people of a project see them; None: as they are."""
        if project is None:
            return self
        return FollowedRecords(self._context, Scope(caller=project), recent=self._recent)

    @property
    def closed(self) -> bool:
        """Whether followers should go."""
        return self._recent.closed

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have a listener called whenever there may be something new, as long as the block lasts."""
        return self._recent.listening(listener)

    def newest(self) -> int:
        """Return the number of the newest change, of any project."""
        with self._store.read() as snapshot:
            return snapshot.records.newest()

    def missing(self, number: int) -> int | None:
        """Return up to which number records after this one may have been removed; None if none were."""
        with self._store.read() as snapshot:
            up_to = snapshot.records.pruning().up_to
        return up_to if number < up_to else None

    def page(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read what follows a number from the store."""
        with self._store.read() as snapshot:
            found = snapshot.records.following(number, wanted, limit=limit)
            if self._scope.caller is not None:
                self._recent.disclose(snapshot.fleet, self._scope.caller)
            return replace(found, records=tuple(self._disclosed(snapshot.fleet, found.records)))

    def recent(self, number: int, wanted: RecordFilter) -> Following | None:
        """Return what follows a number from memory; None if only the store knows."""
        project = self._scope.project
        return self._recent.after(
            number,
            wanted if project is None else replace(wanted, project=project),
            disclosed=self._scope.caller is not None,
        )
