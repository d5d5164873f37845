"""Which addresses a project's webhooks may call.

A webhook makes the server call an address that a tenant has chosen, from where the server stands: a
tenant must not reach through it what only the server can, such as its own loopback or a private network.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# All blocks of the IANA IPv4 Special-Purpose Address Registry, and multicast: also the blocks that IANA
# marks as globally reachable: such an anycast address leads to the nearest instance, which may be private.
# Python's own list (`is_global`) changes with its version, and 3.11 has only a part of 192.0.0.0/24.
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
# and discard-only addresses are outside of it.
_ALLOCATED_IPV6 = IPv6Network("2000::/3")
# All blocks within it of the IANA IPv6 Special-Purpose Address Registry, except 6to4.
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
# RFC 6052: an IPv4 address behind a translator.
_TRANSLATED = IPv6Network("64:ff9b::/96")

# Given out for the internet, yet a platform answers there to its own machines only: Azure's agents, DNS and
# health probes at one address in every network
# (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_OF_THE_PLATFORM = frozenset({IPv4Address("168.63.129.16")})


def is_public(address: str) -> bool:
    """Return whether an address is reachable on the public internet."""
    try:
        meant = _meant(ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    if isinstance(meant, IPv6Address):
        return meant in _ALLOCATED_IPV6 and not any(meant in block for block in _SPECIAL_IPV6)
    return meant not in _OF_THE_PLATFORM and not any(meant in block for block in _SPECIAL_IPV4)


def is_plainly_inside(host: str) -> bool:
    """Return whether a host is plainly, without a look-up, at an address that is not public."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def _meant(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Take the IPv4 address out of an IPv6 address that only leads to it."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
