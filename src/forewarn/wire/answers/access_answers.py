"""Answers about tokens, callers and browser sessions. Only a new token shows its secret."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.access import Caller, Right, Role, may
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer(ApiAnswer):
    """A token without its secret. The server stores only a digest of the secret."""

    NOUN: ClassVar = "token"

    name: str  #: Unique name of the token. Records show it in `by`.
    role: Role  #: Role of the token: `operator`, `user` or `viewer`.
    project: str | None  #: The only project that the token can access. Null: the whole fleet.
    created_at: datetime  #: When the token was created, in service time.
    created_by: str  #: Name of the caller that created the token.
    expires_at: datetime | None  #: When the token expires, in service time. Null: it does not expire.
    revoked_at: datetime | None  #: When the token was revoked. Null: it was not revoked.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAnswer(ApiAnswer):
    """The caller that a token or session identifies, and its rights."""

    NOUN: ClassVar = "caller"

    name: str  #: Name of the token.
    role: Role  #: Role of the token.
    project: str | None  #: The only project that the caller can access. Null: the whole fleet.
    rights: tuple[Right, ...]  #: Operations that the caller may perform.

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """Show a caller."""
        return cls.like(caller, rights=tuple(right for right in Right if may(caller, right)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedTokenAnswer(ApiAnswer):
    """A token that was revoked."""

    token: TokenAnswer  #: The revoked token.
    #: Consequences to act on: no operator token is left, or webhooks that this token added stay active.
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTokenAnswer(ApiAnswer):
    """A new token with its secret."""

    token: TokenAnswer  #: The new token.
    secret: str  #: The secret to send in the Authorization header. It is shown only in this answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer(ApiAnswer):
    """A browser session, or the caller of a request without a session."""

    NOUN: ClassVar = "session"

    caller: CallerAnswer  #: The signed-in caller.
    #: Value of the `X-Forewarn-CSRF` header for requests that change something. Null: no session.
    csrf: str | None
    expires_at: datetime | None  #: When the session ends, in real time. Null: no session.

    @classmethod
    def of(cls, caller: Caller, *, csrf: str | None, expires_at: datetime | None) -> Self:
        """Show a session."""
        return cls(caller=CallerAnswer.of(caller), csrf=csrf, expires_at=expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSessionAnswer(ApiAnswer):
    """A new session with its secret. The server sends the secret only as a cookie."""

    session: SessionAnswer  #: The new session.
    secret: str  #: The value of the session cookie.
