"""The Host header: its parts, and whether what it names can be this service."""

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeAlias

Names: TypeAlias = frozenset[str] | tuple[str, ...]

DEFAULT_PORTS = {"http": "80", "https": "443"}
# The longest name there can be (RFC 1035), and a port; what is longer is not worth remembering.
LONGEST = 253 + len(":65535")
# The name of a network interface, which stands behind a link-local address; in a URL after "%25" (RFC 6874).
_ZONE = re.compile(r"[0-9a-z._-]{1,15}")


# Hosts are few on an endpoint with one address; a hostile client's inventions soon make room again.
@lru_cache(maxsize=256)
def _is_expected(host: str, names: Names) -> bool:
    name, _ = split(host)
    return name == "localhost" or name in names or _is_address(name)


def is_expected(host: str, names: Names) -> bool:
    """Return whether a Host header can be meant for this service; the names are in lower case.

    A web page whose name has been pointed at the service's address sends that name: only what no
    attacker can own is let through.
    """
    return len(host) <= LONGEST and _is_expected(host, names)


def is_readable(host: str) -> bool:
    """Return whether a Host header has the form of one, whatever it names."""
    name, _ = split(host)
    return not host.strip() or (bool(name) and ("%" not in name or _is_address(name)))


def split(authority: str) -> tuple[str, str]:
    """Take a host, in lower case and without brackets, and its port apart; two empty texts if malformed."""
    authority = authority.strip().lower()
    if authority.startswith("["):
        name, bracket, port = authority[1:].partition("]")
        good = bool(bracket) and ":" in name and _is_port(port)
    elif authority.count(":") > 1:  # an IPv6 address without brackets, as some clients write it
        name, port, good = authority, "", True
    else:
        name, colon, digits = authority.partition(":")
        port = colon + digits
        good = _is_port(port)
    return (name, port[1:]) if good else ("", "")


def with_port(authority: str, scheme: str) -> tuple[str, str]:
    """Take a host and its port apart as `split` does; the port is the scheme's where none is given."""
    name, port = split(authority)
    return name, port or DEFAULT_PORTS[scheme]


def _is_port(text: str) -> bool:
    digits = text[1:]
    return not text or (text[0] == ":" and (not digits or (digits.isascii() and digits.isdigit())))


def _is_address(name: str) -> bool:
    name, percent, zone = name.partition("%")
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return not percent or (address.is_link_local and bool(_ZONE.fullmatch(zone.removeprefix("25"))))
