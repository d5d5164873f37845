"""Tokens as they are kept, and found again."""

from collections.abc import Sequence

from sqlalchemy import inspect, literal, select

from forewarn.core.access import Role, Token
from forewarn.store import tables
from forewarn.store.cursors import beyond, decode, page
from forewarn.store.database import database_of, engines_of
from forewarn.store.fleet_rows import Columns, Kept
from forewarn.store.reading import Reader
from forewarn.store.times import micros, micros_or_none, moment, moment_or_none

_T = tables.tokens.c
TOKEN_COLUMNS = (
    *(_T.digest, _T.number, _T.name, _T.role, _T.project),
    *(_T.created_at, _T.created_by, _T.expires_at, _T.revoked_at),
)
_ANY = select(literal(1)).select_from(tables.tokens).limit(1)


class Tokens(Reader):
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


def any_token(url: str) -> bool:
    """Say whether a database has a token, whatever its schema; nothing is made and nothing changed."""
    database = database_of(url)
    if database.embedded and (database.file is None or not database.file.exists()):
        return False
    engines = engines_of(database)
    try:
        with engines.reading.begin() as connection:
            known = inspect(connection).has_table(tables.tokens.name)
            return known and connection.execute(_ANY).first() is not None
    finally:
        engines.dispose()


def token_of(row: Kept) -> Token:
    """Read a token."""
    digest, number, name, role, project, created_at, created_by, expires_at, revoked_at = row
    return Token(
        number=number,
        name=name,
        role=Role(role),
        project=project,
        digest=digest,
        created_at=moment(created_at),
        created_by=created_by,
        expires_at=moment_or_none(expires_at),
        revoked_at=moment_or_none(revoked_at),
    )


def token_row(token: Token) -> Columns:
    """Write a token."""
    return {
        "digest": token.digest,
        "number": token.number,
        "name": token.name,
        "role": token.role.value,
        "project": token.project,
        "created_at": micros(token.created_at),
        "created_by": token.created_by,
        "expires_at": micros_or_none(token.expires_at),
        "revoked_at": micros_or_none(token.revoked_at),
    }
