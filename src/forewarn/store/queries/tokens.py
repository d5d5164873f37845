"""Tokens."""

from collections.abc import Sequence

from sqlalchemy import literal, select

from forewarn.core.access import Token
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import TOKENS
from forewarn.store.writes.writer import put

_T = tables.tokens.c
_BY_CREATION = (_T.number, _T.digest)


class TokenQueries(Reader):
    """What can be asked about tokens."""

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        return self._page(TOKENS.read, TOKENS.select(), _BY_CREATION, after=after, limit=limit)

    def in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        query = TOKENS.select().where(_T.revoked_at.is_(None))
        return self._list(TOKENS.read, query.order_by(*_BY_CREATION))

    def any(self) -> bool:
        """Return whether a token was ever made."""
        return bool(self._all(select(literal(1)).select_from(tables.tokens).limit(1)))


class TokenChanges(TokenQueries):
    """The same, and what can be changed."""

    def save(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        put(self._connection, TOKENS, [token])
