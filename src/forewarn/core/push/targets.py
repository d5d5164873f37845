"""Which addresses a project's webhooks may call.

A webhook makes the server call an address that a tenant has chosen, from where the server stands: a
tenant must not reach through it what only the server can, such as its own loopback or a private network.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# RFC 6052: an IPv4 address behind a translator.
_TRANSLATED = IPv6Network("64:ff9b::/96")
# RFC 4291, 2.4 and the registry of IANA: the only part of IPv6 that is given out for unicast.
_GIVEN_OUT = IPv6Network("2000::/3")

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
    if meant in _OF_THE_PLATFORM or (isinstance(meant, IPv6Address) and meant not in _GIVEN_OUT):
        return False
    return meant.is_global and not (meant.is_multicast or meant.is_reserved)


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
