"""Webhooks: where records are pushed to, and how far that has come."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NewType

from forewarn.core.errors import Invalid
from forewarn.core.model import Record
from forewarn.core.words import Kind, ProjectName

WebhookId = NewType("WebhookId", str)  # an upper-case GUID

# Records about webhooks are pushed to none: two that fail would keep each other busy for ever.
NEVER_PUSHED = frozenset(
    {Kind.WEBHOOK_ADDED, Kind.WEBHOOK_REMOVED, Kind.WEBHOOK_FAILING, Kind.WEBHOOK_RECOVERED}
)
# A receiver that restarts misses a try or two; that is not worth a line in the history.
TRIES_BEFORE_SAYING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Somebody's address for records; kept until each is delivered, in their order."""

    id: WebhookId
    number: int  # of the record of its making; it is told what came after
    url: str
    project: ProjectName | None  # whose records; None: the whole fleet's
    owner: ProjectName | None = None  # the project whose people keep it; None: the operators
    kinds: frozenset[Kind]  # nothing: all that are ever pushed
    secret: str
    by: str
    created_at: datetime
    delivered: int  # the number up to which everything has been delivered
    failures: int = 0  # tries in vain since the last success
    failing_since: datetime | None = None
    error: str = ""

    @property
    def said(self) -> bool:
        """Whether the history says that it is failing."""
        return self.failures >= TRIES_BEFORE_SAYING


def pushable(kinds: Collection[Kind]) -> frozenset[Kind]:
    """Take the kinds that a webhook asks for, unless one is never pushed."""
    never = sorted(NEVER_PUSHED & set(kinds))
    if never:
        raise Invalid(f"kinds: {never[0]} is never pushed: follow the stream for it")
    return frozenset(kinds)


def has_to_send(webhook: Webhook, record: Record) -> bool:
    """Say whether a record is still to be pushed to a webhook."""
    if record.number <= webhook.delivered or record.kind in NEVER_PUSHED:
        return False
    if webhook.project is not None and record.project != webhook.project:
        return False
    return not webhook.kinds or record.kind in webhook.kinds


def delivered(webhook: Webhook, number: int) -> Webhook:
    """Take a success: everything up to a number is delivered."""
    return replace(
        webhook, delivered=max(number, webhook.delivered), failures=0, failing_since=None, error=""
    )


def failed(webhook: Webhook, error: str, *, number: int, now: datetime) -> Webhook:
    """Take a try in vain, after everything up to a number was delivered."""
    return replace(
        webhook,
        delivered=max(number, webhook.delivered),
        failures=webhook.failures + 1,
        failing_since=webhook.failing_since or now,
        error=error,
    )
