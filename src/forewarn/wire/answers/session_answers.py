"""Sessions of browsers."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.access import Caller
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.token_answers import CallerAnswer


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
