"""Sessions of browsers."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, or_, select

from forewarn.core.copies import replace
from forewarn.core.session_cookies import BrowserSession
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import SESSIONS
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import delete_rows, put

_S, _T = tables.sessions.c, tables.tokens.c
_IN_FORCE = select(_T.digest).where(_T.revoked_at.is_(None))
_REMOVE_ENDED = delete(tables.sessions).where(
    or_(_S.expires_at <= bindparam("real_now", type_=tables.TIME), _S.token.not_in(_IN_FORCE))
)


class SessionQueries(Reader):
    """What can be asked about sessions of browsers."""

    def all(self) -> Sequence[BrowserSession]:
        """List all sessions, also of tokens that were revoked; some may be over."""
        return self._list(SESSIONS.read, SESSIONS.select())

    def find(self, digest: str) -> BrowserSession | None:
        """Find a session by its digest; it may be over."""
        return self._find(SESSIONS.read, SESSIONS.select().where(_S.digest == digest))

    def of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by its digest, the oldest first."""
        mine = SESSIONS.select().where(_S.token == token)
        return self._list(SESSIONS.read, mine.order_by(_S.created_at, _S.digest))

    def changes(self) -> int:
        """Return how often sessions have changed."""
        return self._meta.session_changes


class SessionChanges(SessionQueries):
    """The same, and what can be changed."""

    def save(self, session: BrowserSession) -> None:
        """Save a session."""
        put(self._connection, SESSIONS, [session])
        self._count_change()

    def remove(self, digests: Sequence[str]) -> None:
        """Remove sessions, by their digests."""
        if digests:
            delete_rows(self._connection, _S.digest, digests)
            self._count_change()

    def remove_ended(self, real_now: datetime) -> None:
        """Remove sessions that are over, and those of tokens that were revoked."""
        if self._connection.execute(_REMOVE_ENDED, {"real_now": micros(real_now)}).rowcount:
            self._count_change()

    def _count_change(self) -> None:
        self._transaction.keep(replace(self._meta, session_changes=self._meta.session_changes + 1))
