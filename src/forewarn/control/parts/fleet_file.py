"""What is kept of the fleet file."""

from typing import Protocol


class FleetFileQueries(Protocol):
    """Reads which fleet file was applied."""

    def applied(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        ...


class FleetFileChanges(FleetFileQueries, Protocol):
    """Reads and saves which fleet file was applied."""

    def set_applied(self, digest: str | None) -> None:
        """Keep the digest of the fleet file that is applied whole; None: one was begun."""
        ...
