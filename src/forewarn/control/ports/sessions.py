"""How sessions of browsers are kept."""

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.browser_sessions import BrowserSession


class SessionQueries(Protocol):
    """Reads sessions of browsers."""

    def browser_sessions(self) -> Sequence[BrowserSession]:
        """List all sessions, also of tokens that were revoked; some may be over."""
        ...

    def sessions_of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by its digest, the oldest first."""
        ...

    def session_changes(self) -> int:
        """Return how often sessions have changed: while it is the same, they are."""
        ...
