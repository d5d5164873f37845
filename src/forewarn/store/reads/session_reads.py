"""Reading sessions of browsers."""

from collections.abc import Sequence

from forewarn.core.browser_sessions import BrowserSession
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import SESSIONS

_S = tables.sessions.c


class SessionReads(Reader):
    """What can be asked about sessions of browsers."""

    def browser_sessions(self) -> Sequence[BrowserSession]:
        """List all sessions, also of tokens that were revoked; some may be over."""
        return self._list(SESSIONS.read, SESSIONS.select())

    def sessions_of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by its digest, the oldest first."""
        mine = SESSIONS.select().where(_S.token == token)
        return self._list(SESSIONS.read, mine.order_by(_S.created_at, _S.digest))

    def session_changes(self) -> int:
        """Return how often sessions have changed."""
        return self._meta.session_changes
