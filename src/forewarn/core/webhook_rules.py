"""Webhooks: the records that each receives, the state of its delivery, and the addresses it may call."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NewType

from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.record import Record

WebhookId = NewType("WebhookId", str)  # an upper-case GUID
# A receiver that restarts misses one or two deliveries; the history does not mention that.
TRIES_BEFORE_REPORTING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A URL that receives records in their order; forewarn retries each until it is delivered."""

    id: WebhookId
    number: int  # of the record that added it; it receives later records
    url: str
    project: ProjectName | None  # it receives this project's records; None: those of the whole fleet
    owner: ProjectName | None = None  # the project that manages it; None: the operators
    kinds: frozenset[Kind]  # empty: all kinds except those of `NEVER_PUSHED`
    secret: str
    by: str
    created_at: datetime
    delivered: int  # the highest record number that it has received
    failures: int = 0  # failed deliveries since the last success
    failing_since: datetime | None = None
    error: str = ""
    next_try: datetime | None = None  # the time of the next retry, in real time

    @property
    def is_reported(self) -> bool:
        """Whether the history says that its deliveries fail."""
        return self.failures >= TRIES_BEFORE_REPORTING


# No webhook receives records about webhooks: two failing ones would trigger each other forever.
NEVER_PUSHED = frozenset(
    {Kind.WEBHOOK_ADDED, Kind.WEBHOOK_REMOVED, Kind.WEBHOOK_FAILING, Kind.WEBHOOK_RECOVERED}
)


def checked_kinds(kinds: Collection[Kind]) -> frozenset[Kind]:
    """Return the kinds that a webhook asks for; refuse kinds that are never pushed."""
    never = sorted(NEVER_PUSHED & set(kinds))
    if never:
        raise Invalid(f"kinds: {never[0]} is never pushed: read it from the stream")
    return frozenset(kinds)


def must_deliver(webhook: Webhook, record: Record) -> bool:
    """Whether a record must still be delivered to a webhook."""
    if record.number <= webhook.delivered or record.kind in NEVER_PUSHED:
        return False
    if webhook.project is not None and record.project != webhook.project:
        return False
    return not webhook.kinds or record.kind in webhook.kinds


def delivered(webhook: Webhook, number: int) -> Webhook:
    """Return a webhook that has received everything up to a number."""
    return replace(
        webhook,
        delivered=max(number, webhook.delivered),
        failures=0,
        failing_since=None,
        error="",
        next_try=None,
    )


def failed(webhook: Webhook, error: str, *, number: int, now: datetime, next_try: datetime) -> Webhook:
    """Return a webhook after another failure, with everything up to a number delivered."""
    return replace(
        webhook,
        delivered=max(number, webhook.delivered),
        failures=webhook.failures + 1,
        failing_since=webhook.failing_since or now,
        error=error,
        next_try=next_try,
    )


def retry_delay(webhook: Webhook, *, real_now: datetime) -> float | None:
    """Return the seconds until the next retry; None if the webhook is not failing."""
    return None if webhook.next_try is None else max(0.0, (webhook.next_try - real_now).total_seconds())


# All blocks of the IANA IPv4 Special-Purpose Address Registry, and multicast. This includes the blocks that
# IANA marks as globally reachable: an anycast address leads to the nearest instance, which may be private.
# Python's own list (`is_global`) changes between versions, and 3.11 has only a part of 192.0.0.0/24.
# https://www.iana.org/assignments/iana-ipv4-special-registry
_SPECIAL_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared address space of carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link local, with the metadata address
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # multicast tunnels (AMT)
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# RFC 4291, 2.4: the only part of IPv6 that is allocated for unicast. Loopback, private, link-local, multicast
# and discard-only addresses are outside it.
_ALLOCATED_IPV6 = IPv6Network("2000::/3")
# All blocks of the IANA IPv6 Special-Purpose Address Registry inside it, except 6to4.
# https://www.iana.org/assignments/iana-ipv6-special-registry
_SPECIAL_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID and others
            "2001:db8::/32",  # documentation
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
# RFC 6052: the prefix for an IPv4 address behind a translator.
_TRANSLATED = IPv6Network("64:ff9b::/96")

# A public address that Azure uses inside every virtual network, for its agents, DNS and health probes
# (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_OF_THE_PLATFORM = frozenset({IPv4Address("168.63.129.16")})


def is_public(address: str) -> bool:
    """Whether an address is on the public internet."""
    try:
        meant = _meant(ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    if isinstance(meant, IPv6Address):
        return meant in _ALLOCATED_IPV6 and not any(meant in block for block in _SPECIAL_IPV6)
    return meant not in _OF_THE_PLATFORM and not any(meant in block for block in _SPECIAL_IPV4)


def is_internal_host(host: str) -> bool:
    """Whether a host name, without a DNS look-up, means an address that is not public."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def _meant(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Extract the IPv4 address from an IPv6 address that translates to it."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
