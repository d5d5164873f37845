"""File descriptors: raise the limit, and share them between the guest port and the operator port."""

import errno
import os
import resource
from dataclasses import dataclass

from forewarn.config import Settings
from forewarn.server.threads.acceptor import Caps

# Descriptors for the store, logs, webhooks, and connections that are closed right after they are accepted.
RESERVE = 128
# With few descriptors, the reserve is at most this fraction (1/4) of them.
RESERVE_PART = 4
# Operators get at most this fraction (1/8): most connections come from guests.
OPERATORS_PART = 8
# Linux's default maximum (fs.nr_open), for a limit that is "unlimited".
MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many connections each port may have."""

    descriptors: int
    guests: int  # including the listening sockets
    operators: Caps


def raise_limit() -> int:
    """Raise the soft limit to the hard limit; return the number of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else hard
    if soft in (wanted, resource.RLIM_INFINITY):
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # more than the system allows
        return soft
    return wanted


def share(descriptors: int, settings: Settings) -> Shares:
    """Share the descriptors out; a configured number counts as far as there are enough descriptors."""
    operators = min(settings.operator.connections, descriptors // OPERATORS_PART)
    guests = descriptors - min(RESERVE, descriptors // RESERVE_PART) - operators
    return Shares(
        descriptors=descriptors,
        guests=min(settings.guest.connections or guests, guests),
        operators=Caps(whole=operators, per_address=settings.operator.connections_per_address),
    )


def run_out() -> bool:
    """Whether the process has no free descriptor."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
