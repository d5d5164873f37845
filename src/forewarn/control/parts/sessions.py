"""How sessions of browsers are kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.session_cookies import BrowserSession


class SessionQueries(Protocol):
    """Reads sessions of browsers."""

    def all(self) -> Sequence[BrowserSession]:
        """List all sessions, also of tokens that were revoked; some may be over."""
        ...

    def find(self, digest: str) -> BrowserSession | None:
        """Find a session by its digest; it may be over."""
        ...

    def of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by its digest, the oldest first."""
        ...

    def changes(self) -> int:
        """Return how often sessions have changed: while it is the same, they are."""
        ...


class SessionChanges(SessionQueries, Protocol):
    """Reads, saves and forgets sessions of browsers."""

    def save(self, session: BrowserSession) -> None:
        """Save a session."""
        ...

    def remove(self, digests: Sequence[str]) -> None:
        """Forget sessions, by their digests."""
        ...

    def remove_ended(self, real_now: datetime) -> None:
        """Forget sessions that are over by a real time, and those of tokens that were revoked."""
        ...
