"""File descriptors: how many there are, and how they are shared between guests, operators and all else."""

import errno
import os
import resource
from dataclasses import dataclass

from forewarn.config import Settings
from forewarn.server.threads.acceptor import Caps

# For the store, logs, webhooks, and connections that are ended as soon as they are accepted; a quarter where
# there are few.
RESERVE, RESERVE_PART = 128, 4
# Operators get no more than this part: guests are the many.
OPERATORS_PART = 8
# What a system offers at most, by default (fs.nr_open); a limit may be named "unlimited".
MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many connections each port may have."""

    descriptors: int
    guests: int  # with the sockets that listen for them
    operators: Caps


def raise_limit() -> int:
    """Raise the soft limit to the hard one, and return how many descriptors there are now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else hard
    if soft in (wanted, resource.RLIM_INFINITY):
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # more than this system gives to anybody
        return soft
    return wanted


def share(descriptors: int, settings: Settings) -> Shares:
    """Share descriptors out; what is set counts as far as there are enough."""
    operators = min(settings.operator.connections, descriptors // OPERATORS_PART)
    guests = descriptors - min(RESERVE, descriptors // RESERVE_PART) - operators
    return Shares(
        descriptors=descriptors,
        guests=min(settings.guest.connections or guests, guests),
        operators=Caps(whole=operators, per_address=settings.operator.connections_per_address),
    )


def run_out() -> bool:
    """Return whether not one descriptor is left."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
