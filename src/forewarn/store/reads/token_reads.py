"""Reading tokens."""

from collections.abc import Sequence

from sqlalchemy import literal, select

from forewarn.core.access import Token
from forewarn.store import tables
from forewarn.store.reads.cursors import beyond, decode, page
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.token_rows import TOKEN_COLUMNS, token_of

_T = tables.tokens.c
_ANY = select(literal(1)).select_from(tables.tokens).limit(1)


class TokenReads(Reader):
    """What can be asked about tokens."""

    def tokens(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        place = None if after is None else decode(after, like=(int, str))
        query = beyond(select(*TOKEN_COLUMNS), (_T.number, _T.digest), place, limit=limit, newest=False)
        found = [token_of(row) for row in self._all(query)]
        return page(found, limit=limit, place=lambda token: (token.number, token.digest))

    def tokens_in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        query = select(*TOKEN_COLUMNS).where(_T.revoked_at.is_(None)).order_by(_T.number, _T.digest)
        return [token_of(row) for row in self._all(query)]

    def has_tokens(self) -> bool:
        """Say whether a token was ever made."""
        return bool(self._all(_ANY))
