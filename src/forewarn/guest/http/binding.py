"""Binding addresses: a refusal says why, and where to choose another."""

import errno
import socket
from collections.abc import Iterator

from forewarn.core.errors import Conflict
from forewarn.guest.http.link_layer import keep_openings

# A fleet that comes back from an outage calls all at once.
BACKLOG = 4096


def bind(host: str, port: int, *, what: str, change: str) -> Iterator[socket.socket]:
    """Bind a socket for each address that a host stands for; `change` says where another is chosen."""
    try:
        for family, *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            yield _bound(family, address)
    except OSError as error:
        raise Conflict(not_opened(what, error, change=change)) from error


def not_opened(what: str, error: OSError, *, change: str) -> str:
    """Write why an address cannot be had, and where another is chosen."""
    return f"{what} {_reason(error)}: {change}"


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" must not take the port that "0.0.0.0" wants.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        keep_openings(bound)
        # Two can be bound to one place while neither listens; only now is it ours.
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "is in use"
        case errno.EADDRNOTAVAIL:
            return "is no address of this system"
        case errno.EACCES:
            return "needs the right to bind ports below 1024"
        case _:
            return f"cannot be opened ({error.strerror or error})"
