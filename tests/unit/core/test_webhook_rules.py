"""The state of webhook deliveries, retries, and the addresses that a project may use."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import (
    Webhook,
    WebhookId,
    checked_kinds,
    delivered,
    failed,
    is_internal_host,
    is_public,
    must_deliver,
    retry_delay,
)

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
def test_the_third_failure_is_reported(failures: int, reported: bool) -> None:
    assert webhook(failures=failures).is_reported is reported


def test_a_success_resets_the_failures() -> None:
    failing = failed(webhook(), "no answer", number=5, now=NOON, next_try=NOON + MINUTE)
    assert delivered(failing, 9) == webhook(delivered=9)
    assert delivered(webhook(), 3) == webhook()


@pytest.mark.parametrize(
    ("next_try", "left"), [(None, None), (NOON + MINUTE, 60.0), (NOON, 0.0), (NOON - MINUTE, 0.0)]
)
def test_a_failing_webhook_is_not_called_before_its_next_try(
    next_try: datetime | None, left: float | None
) -> None:
    assert retry_delay(webhook(next_try=next_try), real_now=NOON) == left


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
def test_a_webhook_receives_the_new_records_that_it_asked_for(more: dict[str, object], sent: bool) -> None:
    record = {"number": 6, "at": NOON, "kind": Kind.ORDER_PLACED, "project": ProjectName("a"), **more}
    asks = webhook(project=ProjectName("a"), kinds=checked_kinds([Kind.ORDER_PLACED]))
    assert must_deliver(asks, Record(**record)) is sent  # type: ignore[arg-type]


def test_a_webhook_cannot_ask_for_kinds_that_are_never_pushed() -> None:
    with pytest.raises(Invalid, match="webhook-failing is never pushed"):
        checked_kinds([Kind.WEBHOOK_FAILING])


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "172.15.0.1",
        "192.169.0.1",
        *("168.63.129.15", "168.63.129.17"),
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",  # the same, through an IPv6 socket
        "64:ff9b::808:808",  # the same, behind a translator
        "2002:808:808::1",  # the same, by 6to4
        *("9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *("169.253.255.255", "169.255.0.0", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0"),
        *("192.31.195.255", "192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255"),
        *("192.88.100.0", "192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0"),
        *("198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
        *("2001:200::", "2001:db7:ffff::", "2001:db9::", "2620:4f:7fff::", "2620:4f:8001::", "3ffe::1"),
    ],
)
def test_addresses_on_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "::1", "::"),  # this machine
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1"),  # private
        *("169.254.169.254", "fe80::1", "fe80::1%eth0", "fec0::1"),  # the link, the site
        *("100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "2001:db8::1"),
        *("224.0.0.1", "239.1.1.1", "ff02::1", "255.255.255.255", "240.0.0.1"),  # multicast, reserved
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),  # mapped to IPv6
        *("::127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1"),
        *("64:ff9b:1::1", "2001::1", "4000::1", "100::1"),
        # The first and last address of each block of IANA's registries.
        *("0.255.255.255", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.0"),
        *("169.254.0.0", "169.254.255.255", "172.16.0.0", "192.0.0.0", "192.0.0.8", "192.0.0.9"),
        *("192.0.0.10", "192.0.0.170", "192.0.0.171", "192.0.0.255", "192.0.2.0", "192.0.2.255"),
        *("192.31.196.0", "192.31.196.255", "192.52.193.0", "192.52.193.255", "192.88.99.0"),
        *("192.88.99.255", "192.168.0.0", "192.168.255.255", "192.175.48.0", "192.175.48.255"),
        *("198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0"),
        *("203.0.113.255", "224.0.0.0", "239.255.255.255", "255.255.255.254"),
        *("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "100::", "100:0:0:1::1", "1fff:ffff::", "5f00::1"),
        *("2001::", "2001:0:ffff::", "2001:1::1", "2001:1::2", "2001:1::3", "2001:2::1", "2001:3::1"),
        *("2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff:ffff::1"),
        *("2001:db8::", "2001:db8:ffff::", "2620:4f:8000::", "2620:4f:8000:ffff::", "3fff::"),
        *("3fff:fff:ffff::", "fdff::1", "febf::1", "feff::1", "ffff::1"),
        # An IPv4 address of a block, in each form of IPv6 that translates to it.
        *("::ffff:192.0.0.9", "::ffff:192.88.99.1", "64:ff9b::c000:9", "2002:c000:9::1", "2002:a00:1::1"),
        *("::ffff:0:8.8.8.8", "::8.8.8.8"),  # translated or compatible: no longer in use
        *("168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"),  # Azure's own
        *("", "localhost", "0x7f.1", "2130706433", "1.2.3", "1.2.3.4.5", "::ffff:300.0.0.1"),
    ],
)
def test_internal_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "::1"])
def test_some_host_names_are_internal_without_a_look_up(host: str) -> None:
    assert is_internal_host(host)


@pytest.mark.parametrize("host", ["hooks.example", "8.8.8.8", "notlocalhost", "10.example", "2606:4700::1"])
def test_other_host_names_are_checked_after_their_look_up(host: str) -> None:
    assert not is_internal_host(host)
