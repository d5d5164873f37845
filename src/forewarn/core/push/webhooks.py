"""Which records are pushed to a webhook, and how a success or a failure is counted."""

from collections.abc import Collection
from datetime import datetime

from forewarn.core.copies import replace
from forewarn.core.errors import Invalid
from forewarn.core.model.record import Record
from forewarn.core.model.webhook import Webhook
from forewarn.core.words import Kind

# Records about webhooks are pushed to none: two that fail would keep each other busy for ever.
NEVER_PUSHED = frozenset(
    {Kind.WEBHOOK_ADDED, Kind.WEBHOOK_REMOVED, Kind.WEBHOOK_FAILING, Kind.WEBHOOK_RECOVERED}
)


def pushable(kinds: Collection[Kind]) -> frozenset[Kind]:
    """Return the kinds that a webhook asks for; refuse one that is never pushed."""
    never = sorted(NEVER_PUSHED & set(kinds))
    if never:
        raise Invalid(f"kinds: {never[0]} is never pushed: follow the stream for it")
    return frozenset(kinds)


def has_to_send(webhook: Webhook, record: Record) -> bool:
    """Return whether a record is still to be pushed to a webhook."""
    if record.number <= webhook.delivered or record.kind in NEVER_PUSHED:
        return False
    if webhook.project is not None and record.project != webhook.project:
        return False
    return not webhook.kinds or record.kind in webhook.kinds


def delivered(webhook: Webhook, number: int) -> Webhook:
    """Return a webhook that has everything up to a number."""
    return replace(
        webhook,
        delivered=max(number, webhook.delivered),
        failures=0,
        failing_since=None,
        error="",
        next_try=None,
    )


def failed(webhook: Webhook, error: str, *, number: int, now: datetime, next_try: datetime) -> Webhook:
    """Return a webhook after one more failure, with everything up to a number delivered."""
    return replace(
        webhook,
        delivered=max(number, webhook.delivered),
        failures=webhook.failures + 1,
        failing_since=webhook.failing_since or now,
        error=error,
        next_try=next_try,
    )


def left_alone_for(webhook: Webhook, *, real_now: datetime) -> float | None:
    """Return for how many seconds a webhook that fails is not called; None if it is not failing."""
    return None if webhook.next_try is None else max(0.0, (webhook.next_try - real_now).total_seconds())
