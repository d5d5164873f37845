"""Parse the Host header, and decide whether it can name this server."""

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeAlias

Names: TypeAlias = frozenset[str] | tuple[str, ...]

DEFAULT_PORTS = {"http": "80", "https": "443"}
# The longest name (RFC 1035) with a port. Longer headers must not fill the cache.
LONGEST = 253 + len(":65535")
# The network interface of a link-local address, in a URL after "%25" (RFC 6874).
_ZONE = re.compile(r"[0-9a-z._-]{1,15}")


# An endpoint has few names. Names that a hostile client invents are evicted soon.
@lru_cache(maxsize=256)
def _is_expected(host: str, names: Names) -> bool:
    name, _ = split(host)
    return name == "localhost" or name in names or _is_address(name)


def is_expected(host: str, names: Names) -> bool:
    """Return whether a Host header can name this server. The names are in lower case.

    An attacker can point a name of their own at the server (DNS rebinding). Only IP addresses, localhost
    and configured names are accepted.
    """
    return len(host) <= LONGEST and _is_expected(host, names)


def is_readable(host: str) -> bool:
    """Return whether a Host header is well-formed."""
    name, _ = split(host)
    return not host.strip() or (bool(name) and ("%" not in name or _is_address(name)))


def split(authority: str) -> tuple[str, str]:
    """Split a host in lower case without brackets from its port. Both are empty if it is malformed."""
    authority = authority.strip().lower()
    if authority.startswith("["):
        name, bracket, port = authority[1:].partition("]")
        good = bool(bracket) and ":" in name and _is_port(port)
    elif authority.count(":") > 1:  # some clients write IPv6 addresses without brackets
        name, port, good = authority, "", True
    else:
        name, colon, digits = authority.partition(":")
        port = colon + digits
        good = _is_port(port)
    return (name, port[1:]) if good else ("", "")


def with_port(authority: str, scheme: str) -> tuple[str, str]:
    """Split a host from its port. Default: the port of the scheme."""
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
