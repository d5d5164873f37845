"""Tokens as rows, and back; see `fleet_rows` for the manner."""

from forewarn.core.access import Role, Token
from forewarn.store import tables
from forewarn.store.rows.fleet_rows import Columns, Kept
from forewarn.store.rows.times import micros, micros_or_none, moment, moment_or_none

_T = tables.tokens.c
TOKEN_COLUMNS = (
    *(_T.digest, _T.number, _T.name, _T.role, _T.project),
    *(_T.created_at, _T.created_by, _T.expires_at, _T.revoked_at),
)


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
