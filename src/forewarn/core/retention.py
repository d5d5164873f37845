"""Retention of the history: the old records that may be deleted, and those that are still needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import EventId, OrderId
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.webhook_rules import Webhook, must_deliver

# How often to look for old records, so the history mentions their deletion at most once a day.
EVERY = timedelta(days=1)
# An operator who was away overnight still wants to read the last day.
SHORTEST = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """How far old records are deleted."""

    up_to: int = 0  # the highest deleted number; below it, only needed records are left
    unreported: int = 0  # how many were deleted since the history last said so
    next_at: datetime | None = None  # when to look for old records again; None: at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """The orders, rollouts and webhooks whose records are kept at any age."""

    orders: frozenset[OrderId] = frozenset()  # open ones; their events' records are kept too
    rollouts: Sequence[Rollout] = ()  # open ones
    webhooks: Sequence[Webhook] = ()


def removable(records: Iterable[Record], needed: Needed) -> tuple[int, ...]:
    """Return the numbers of the old records that nothing needs."""
    orders = needed.orders.union(*(wave.orders for rollout in needed.rollouts for wave in rollout.waves))
    return tuple(
        record.number
        for record in records
        if record.order not in orders
        and not _is_of_rollout(needed.rollouts, record)
        and not any(must_deliver(webhook, record) for webhook in needed.webhooks)
    )


def events_of(records: Iterable[Record], *, removed: Iterable[int]) -> frozenset[EventId]:
    """Return the events of the records that were deleted."""
    gone = frozenset(removed)
    return frozenset(record.event for record in records if record.event is not None and record.number in gone)


def _is_of_rollout(rollouts: Iterable[Rollout], record: Record) -> bool:
    # A record names its rollout only in its reason.
    return any(record.number == rollout.number or rollout.id in record.reason for rollout in rollouts)
