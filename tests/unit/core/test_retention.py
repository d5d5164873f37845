"""Which old records may be deleted."""

from datetime import UTC, datetime

import pytest

from forewarn.core.basic_types import EventId, HostName, Kind, OrderId, ProjectName, Work
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.retention import Needed, events_of, removable
from forewarn.core.webhook_rules import Webhook, WebhookId

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER, OTHER = (
    OrderId("AAAAAAAA-0000-4000-8000-000000000001"),
    OrderId("AAAAAAAA-0000-4000-8000-000000000002"),
)


def record(number: int, kind: Kind = Kind.ORDER_PLACED, **more: object) -> Record:
    return Record(number=number, at=NOW, kind=kind, **more)  # type: ignore[arg-type]


def webhook(delivered: int, **more: object) -> Webhook:
    given = {"project": None, "kinds": frozenset(), "secret": "", "by": "", **more}
    return Webhook(
        id=WebhookId("W"),
        number=1,
        url="http://x",
        created_at=NOW,
        delivered=delivered,
        **given,  # type: ignore[arg-type]
    )


def rollout(number: int, *orders: OrderId) -> Rollout:
    return Rollout(
        id="BBBBBBBB-0000-4000-8000-000000000001",
        number=number,
        work=Work.FREEZE,
        hosts=(HostName("host-1"),),
        waves=(Wave(hosts=(HostName("host-1"),), orders=orders),),
        by="test",
        created_at=NOW,
    )


def test_records_that_nothing_needs_are_removable() -> None:
    assert removable([record(1), record(2, order=ORDER)], Needed()) == (1, 2)


def test_records_of_an_open_order_stay() -> None:
    records = [record(1, order=ORDER), record(2, order=OTHER), record(3, Kind.EVENT_STARTED, order=ORDER)]
    assert removable(records, Needed(orders=frozenset({ORDER}))) == (2,)


def test_records_of_an_open_rollout_and_its_orders_stay() -> None:
    mine = rollout(1, OTHER)
    records = [
        record(1, Kind.ROLLOUT_BEGUN),
        record(2, Kind.ORDER_DONE, order=OTHER),
        record(3, Kind.ROLLOUT_PAUSED, reason=f"rollout {mine.id}: by anna"),
        record(4, Kind.ROLLOUT_PAUSED, reason="rollout BBBBBBBB-0000-4000-8000-000000000002: by anna"),
    ]
    assert removable(records, Needed(rollouts=(mine,))) == (4,)


@pytest.mark.parametrize(
    ("wants", "gone"),
    [
        (webhook(delivered=1), (1,)),
        (webhook(delivered=9), (1, 2, 3)),
        (webhook(delivered=1, project=ProjectName("a")), (1, 3)),
        (webhook(delivered=1, kinds=frozenset({Kind.EVENT_STARTED})), (1, 2)),
    ],
)
def test_undelivered_records_of_a_webhook_stay(wants: Webhook, gone: tuple[int, ...]) -> None:
    records = [record(1), record(2, project=ProjectName("a")), record(3, Kind.EVENT_STARTED)]
    assert removable(records, Needed(webhooks=(wants,))) == gone


def test_records_that_are_never_pushed_are_removable() -> None:
    assert removable([record(5, Kind.WEBHOOK_FAILING)], Needed(webhooks=(webhook(delivered=1),))) == (5,)


def test_removing_records_returns_their_events() -> None:
    records = [record(1), *(record(number, event=EventId(f"E{number}")) for number in (2, 3, 4))]
    assert events_of(records, removed=(1, 2, 4)) == {"E2", "E4"}
