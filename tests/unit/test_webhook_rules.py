"""How a success and a failure of a webhook are counted, and when it is called again."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.errors import Invalid
from forewarn.core.model.record import Record
from forewarn.core.push import Webhook, WebhookId, delivered, failed, has_to_send, left_alone_for, pushable
from forewarn.core.words import Kind, ProjectName

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def webhook(**more: object) -> Webhook:
    fixed = {
        "id": WebhookId("A"),
        "number": 1,
        "url": "https://hooks.example/",
        "project": None,
        "by": "test",
    }
    kept = {"kinds": frozenset[Kind](), "secret": "", "created_at": NOON, "delivered": 5}
    return Webhook(**{**fixed, **kept, **more})  # type: ignore[arg-type]


def test_failures_are_counted_from_the_first_and_say_when_the_next_try_is() -> None:
    once = failed(webhook(), "no answer", number=7, now=NOON, next_try=NOON + MINUTE)
    twice = failed(once, "it answered 503", number=6, now=NOON + MINUTE, next_try=NOON + 3 * MINUTE)
    assert (twice.failures, twice.failing_since, twice.error) == (2, NOON, "it answered 503")
    assert (twice.delivered, twice.next_try) == (7, NOON + 3 * MINUTE)


@pytest.mark.parametrize(("failures", "reported"), [(0, False), (2, False), (3, True)])
def test_the_third_failure_is_worth_a_record(failures: int, reported: bool) -> None:
    assert webhook(failures=failures).is_reported is reported


def test_a_success_ends_all_of_it() -> None:
    failing = failed(webhook(), "no answer", number=5, now=NOON, next_try=NOON + MINUTE)
    assert delivered(failing, 9) == webhook(delivered=9)
    assert delivered(webhook(), 3) == webhook()


@pytest.mark.parametrize(
    ("next_try", "left"), [(None, None), (NOON + MINUTE, 60.0), (NOON, 0.0), (NOON - MINUTE, 0.0)]
)
def test_a_webhook_that_fails_is_left_alone_until_its_next_try(
    next_try: datetime | None, left: float | None
) -> None:
    assert left_alone_for(webhook(next_try=next_try), real_now=NOON) == left


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({}, True),
        ({"number": 5}, False),
        ({"kind": Kind.WEBHOOK_ADDED}, False),
        ({"project": ProjectName("b")}, False),
        ({"kind": Kind.EVENT_STARTED}, False),
    ],
)
def test_a_webhook_has_to_be_sent_what_it_asked_for_and_does_not_have(
    more: dict[str, object], sent: bool
) -> None:
    record = {"number": 6, "at": NOON, "kind": Kind.ORDER_PLACED, "project": ProjectName("a"), **more}
    asks = webhook(project=ProjectName("a"), kinds=pushable([Kind.ORDER_PLACED]))
    assert has_to_send(asks, Record(**record)) is sent  # type: ignore[arg-type]


def test_what_is_never_pushed_cannot_be_asked_for() -> None:
    with pytest.raises(Invalid, match="webhook-failing is never pushed"):
        pushable([Kind.WEBHOOK_FAILING])
