"""Tokens and sessions of browsers, without their secrets but for a new one's."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.access import Caller, Right, Role, may
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer(ApiAnswer):
    """A token, without its secret."""

    NOUN: ClassVar = "token"

    name: str
    role: Role
    project: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAnswer(ApiAnswer):
    """Whom a token belongs to, and what that allows."""

    NOUN: ClassVar = "caller"

    name: str
    role: Role
    project: str | None
    rights: tuple[Right, ...]

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """Show a caller."""
        return cls.like(caller, rights=tuple(right for right in Right if may(caller, right)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedTokenAnswer(ApiAnswer):
    """A token that is no longer good, and what that leaves behind."""

    token: TokenAnswer
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTokenAnswer(ApiAnswer):
    """A token, and its secret, which is shown this once."""

    token: TokenAnswer
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer(ApiAnswer):
    """Who is signed in; without a session, which a call with a token has none of, who asks."""

    NOUN: ClassVar = "session"

    caller: CallerAnswer
    csrf: str | None  # what calls that change something must send; null: nothing
    expires_at: datetime | None  # in real time

    @classmethod
    def of(cls, caller: Caller, *, csrf: str | None, expires_at: datetime | None) -> Self:
        """Show a session."""
        return cls(caller=CallerAnswer.of(caller), csrf=csrf, expires_at=expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSessionAnswer(ApiAnswer):
    """A session that was begun, and its secret, which is sent as a cookie alone."""

    session: SessionAnswer
    secret: str
