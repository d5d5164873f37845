"""How long the history is kept: which old records may go, and which are still needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import EventId, OrderId
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.webhook_rules import Webhook, has_to_send

# Old records are looked for so often; so the history says at most once a day that some have gone.
EVERY = timedelta(days=1)
# Less would remove what an operator who was away for the night still wants to read.
SHORTEST = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """How far old records have been removed."""

    up_to: int = 0  # the highest number that was removed; below it only needed ones are left
    unreported: int = 0  # how many have gone since the history last said so
    next_at: datetime | None = None  # when old ones are looked for again; None: at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What needs its records, however old they are."""

    orders: frozenset[OrderId] = frozenset()  # that are open, and their events with them
    rollouts: Sequence[Rollout] = ()  # that are open
    webhooks: Sequence[Webhook] = ()


def removable(records: Iterable[Record], needed: Needed) -> tuple[int, ...]:
    """Choose those of some old records that nothing needs any more, by their numbers."""
    waves = (wave for rollout in needed.rollouts for wave in rollout.waves)
    orders = needed.orders.union(*(wave.orders for wave in waves))
    return tuple(
        record.number
        for record in records
        if record.order not in orders
        and not _is_of_rollout(needed.rollouts, record)
        and not _owed(needed, record)
    )


def events_of(records: Iterable[Record], *, removed: Iterable[int]) -> frozenset[EventId]:
    """Return the events that records were about which were removed, by their numbers."""
    gone = frozenset(removed)
    return frozenset(record.event for record in records if record.event is not None and record.number in gone)


def _is_of_rollout(rollouts: Iterable[Rollout], record: Record) -> bool:
    # A rollout is named in the words of its records, and nowhere else.
    return any(record.number == rollout.number or rollout.id in record.reason for rollout in rollouts)


def _owed(needed: Needed, record: Record) -> bool:
    return any(has_to_send(webhook, record) for webhook in needed.webhooks)
