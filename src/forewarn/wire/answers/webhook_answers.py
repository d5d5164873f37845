"""Webhooks, and how pushing to them goes."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.push import Webhook
from forewarn.core.words import Kind
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswer(ApiAnswer):
    """An address that records are pushed to, and how that goes."""

    NOUN: ClassVar = "webhook"

    id: str
    url: str
    project: str | None
    owner: str | None
    kinds: tuple[Kind, ...]
    by: str
    created_at: datetime
    delivered: int
    behind: int
    failures: int
    failing_since: datetime | None
    error: str | None
    next_try_seconds: float | None

    @classmethod
    def of(cls, webhook: Webhook, *, behind: int, next_try: float | None) -> Self:
        """Show a webhook without its secret; the next try is in so many real seconds."""
        return cls.like(
            webhook,
            kinds=tuple(sorted(webhook.kinds)),
            behind=behind,
            next_try_seconds=None if next_try is None else round(next_try, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhookAnswer(ApiAnswer):
    """A webhook, and the secret that is shown once."""

    webhook: WebhookAnswer
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer(ApiAnswer):
    """What came of a call."""

    delivered: bool
    error: str | None
