"""The fleet file that was last applied."""

from forewarn.core.copies import replace
from forewarn.store.reads.reader import Reader


class FleetFileQueries(Reader):
    """What is known of the fleet file."""

    def applied(self) -> str | None:
        """Return the digest of the one last applied."""
        return self._meta.applied_fleet


class FleetFileChanges(FleetFileQueries):
    """The same, and what can be changed."""

    def set_applied(self, digest: str | None) -> None:
        """Save the digest of the one that is applied whole; None: one was begun."""
        self._transaction.keep(replace(self._meta, applied_fleet=digest))
