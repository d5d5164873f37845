"""Who calls: addresses in one spelling, and which names a request may be addressed to."""

from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv6Address, ip_address


def canonical(address: str) -> str:
    """Spell an address the one way in which addresses are compared.

    A zone is left out, and an IPv4 address that came through an IPv6 socket is an IPv4 address.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.compressed


# Hosts are few on an endpoint with one address; a hostile guest's inventions soon make room again.
@lru_cache(maxsize=256)
def is_host_allowed(host: str, names: Collection[str]) -> bool:
    """Say whether a Host header can be meant for this service.

    A web page whose name has been pointed at the service's address sends that name: only what no
    attacker can own is let through.
    """
    name = _without_port(host)
    if name is None:
        return False
    return name == "localhost" or name in names or _is_address(name)


def _without_port(host: str) -> str | None:
    """Take the port off, and the brackets of an IPv6 address; None if it is malformed."""
    host = host.strip().lower()
    if host.startswith("["):
        inside, bracket, after = host[1:].partition("]")
        good = bool(bracket) and ":" in inside and _is_port(after)
        return inside if good else None
    if host.count(":") > 1:  # an IPv6 address without brackets, as some clients write it
        return host
    name, colon, port = host.partition(":")
    return name if _is_port(colon + port) else None


def _is_port(text: str) -> bool:
    digits = text[1:]
    return not text or (text[0] == ":" and (not digits or (digits.isascii() and digits.isdigit())))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
