"""Answers about records, webhooks and promises of notice."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import Kind
from forewarn.core.model.record import Record
from forewarn.core.topics import Topic, topics_of
from forewarn.core.webhook_rules import Webhook
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import listed_group


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAnswer(ApiAnswer):
    """A numbered entry of the history."""

    number: int  #: Number of the record. Later records have higher numbers.
    at: datetime  #: When it happened, in service time.
    kind: str  #: Kind of record, such as `order-placed`.
    project: str | None  #: Project that the record concerns.
    group: str | None  #: Group that the record concerns.
    host: str | None  #: Host that the record concerns.
    machine: str | None  #: Machine that the record concerns.
    event: str | None  #: Id of the event that the record concerns.
    order: str | None  #: Id of the order that the record concerns.
    by: str | None  #: Person, guest or component that acted.
    reason: str | None  #: Reason or details.
    topics: tuple[Topic, ...]  #: Lists to reload, because the record changes them.

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
    """A page of records."""

    records: tuple[RecordAnswer, ...]  #: Newest first. With `above`: oldest first.
    next: str | None  #: Cursor of the next page. Null: there is none.
    missing_up_to: int | None  #: Records after `above` and up to this number may be deleted. Null: none are.


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswer(ApiAnswer):
    """A webhook and the state of its deliveries."""

    NOUN: ClassVar = "webhook"

    id: str  #: GUID of the webhook, in upper case.
    url: str  #: URL that receives the records.
    project: str | None  #: The webhook gets only records of this project. Null: all that its owner may see.
    owner: str | None  #: Project whose users manage the webhook. Null: operators manage it.
    kinds: tuple[Kind, ...]  #: The webhook gets only records of these kinds. Empty: all kinds.
    by: str  #: Name of the caller that added the webhook.
    created_at: datetime  #: When the webhook was added, in service time.
    delivered: int  #: All records up to this number were delivered.
    behind: int  #: Number of records that wait for delivery.
    failures: int  #: Failed attempts since the last delivery.
    failing_since: datetime | None  #: Time of the first of these attempts. Null: deliveries succeed.
    error: str | None  #: Error of the last attempt. Null: deliveries succeed.
    next_try_seconds: float | None  #: Real time until the next attempt. Null: deliveries succeed.

    @classmethod
    def of(cls, webhook: Webhook, *, behind: int, next_try: float | None) -> Self:
        """Show a webhook without its secret."""
        return cls.like(
            webhook,
            kinds=tuple(sorted(webhook.kinds)),
            behind=behind,
            next_try_seconds=None if next_try is None else round(next_try, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhookAnswer(ApiAnswer):
    """A new webhook with its secret."""

    webhook: WebhookAnswer  #: The new webhook.
    secret: str  #: The secret that signs deliveries. It is shown only in this answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTestAnswer(ApiAnswer):
    """The result of a test delivery."""

    delivered: bool  #: Whether the URL accepted the test event.
    error: str | None  #: Error of the delivery. Null: it succeeded.


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAnswer(ApiAnswer):
    """Kept and broken promises of notice of a project in one month."""

    NOUN: ClassVar = "promise"

    project: str  #: Name of the project.
    month: str  #: Month in UTC, such as `2026-11`.
    simulated: bool  #: Whether the counts are of simulated work.
    kept: int  #: Machines that got their notice in time.
    late: int  #: Machines that got less notice than promised.
    never: int  #: Machines that were never sent the event.
    judged: int  #: The sum of `kept`, `late` and `never`.
    broken: int  #: Promises that an operator broke: records of kind `promise-broken`.
    unannounced: int  #: Changes of machines outside forewarn: records of kind `unannounced-impact`.
