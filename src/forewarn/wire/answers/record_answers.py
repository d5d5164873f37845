"""The history: its records, the webhooks that they are pushed to, and what became of promises of notice."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import Kind
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook
from forewarn.core.topics import Topic, topics_of
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import listed_group


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAnswer(ApiAnswer):
    """A line of the history."""

    number: int
    at: datetime
    kind: str
    project: str | None
    group: str | None
    host: str | None
    machine: str | None
    event: str | None
    order: str | None
    by: str | None
    reason: str | None
    topics: tuple[Topic, ...]  # the lists that have changed with it

    @classmethod
    def of(cls, record: Record) -> Self:
        """Show a record."""
        return cls.like(
            record,
            kind=str(record.kind),
            group=listed_group(record.group) if record.group else None,
            topics=topics_of(record.kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsAnswer(ApiAnswer):
    """Records, newest first.

    `missing_up_to` is the number up to which records after `above` may have been removed; null if none were.
    """

    records: tuple[RecordAnswer, ...]
    next: str | None
    missing_up_to: int | None


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
class WebhookTestAnswer(ApiAnswer):
    """What came of a call."""

    delivered: bool
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAnswer(ApiAnswer):
    """What became of a project's promises in a month; `judged` is the sum of the first three counts."""

    NOUN: ClassVar = "promise"

    project: str
    month: str
    simulated: bool
    kept: int
    late: int
    never: int
    judged: int
    broken: int
    unannounced: int  # times that something outside forewarn changed a machine
