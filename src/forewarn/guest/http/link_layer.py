"""The MAC that a connection was opened from, where that says who calls.

The kernel keeps the frame that opened a connection for us (TCP_SAVE_SYN): its sender is a fact of that very
connection. The neighbour table is not: guests write it, and one that claims another's address there must
neither be taken for it nor silence it. So the table is asked only where the frame was not kept, as under a
flood of openings.

On a way over a router the MAC is the router's and says nothing; so only callers on a link of ours are asked
about. What cannot be told is None, and holds against nobody.
"""

import contextlib
import socket
import time
from asyncio import BaseTransport
from typing import Any

from forewarn.guest.http.netlink import Link, Netlink

# Of linux/tcp.h: keep the frames of openings, from their link layer on.
_SAVE_SYN, _SAVED_SYN = 27, 28
_WITH_LINK_LAYER = 2
_FRAME_HEAD = 14  # receiver, sender, type
_NOBODY = bytes(6)  # the sender of what never was on a link
# A network is seldom rebuilt, and the answer is the same for every connection of a machine.
_KNOWN_SECONDS = 10.0
_MOST_KNOWN = 100_000


def keep_openings(listening: socket.socket) -> None:
    """Have the kernel keep what opens the connections of a socket, if it can."""
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.IPPROTO_TCP, _SAVE_SYN, _WITH_LINK_LAYER)


class LinkLayer:
    """Says from which MAC connections came. Lives on the guest loop."""

    def __init__(self, *, checked: bool) -> None:
        self._netlink = Netlink() if checked else None
        self._links: dict[str, tuple[float, Link | None]] = {}

    def mac(self, transport: BaseTransport, address: str) -> str | None:
        """Return the MAC that a connection from an address was opened from; None if that says nothing."""
        link = self._link(address)
        if link is None or self._netlink is None:
            return None
        sender = _sender(transport.get_extra_info("socket")) or self._netlink.mac_of(address, link)
        return None if sender is None or sender == _NOBODY else sender.hex(":")

    def close(self) -> None:
        """Ask no more."""
        if self._netlink is not None:
            self._netlink.close()

    def _link(self, address: str) -> Link | None:
        if self._netlink is None:
            return None
        now = time.monotonic()
        until, link = self._links.get(address, (0.0, None))
        if now >= until:
            if len(self._links) >= _MOST_KNOWN:
                self._links.clear()
            link = self._netlink.link_to(address)
            self._links[address] = now + _KNOWN_SECONDS, link
        return link


def _sender(connected: Any) -> bytes | None:
    """Return who sent the frame that opened a connection; None if it was not kept."""
    try:
        frame: bytes = connected.getsockopt(socket.IPPROTO_TCP, _SAVED_SYN, _FRAME_HEAD * 16)
    except OSError:
        return None
    return frame[6:12] if len(frame) > _FRAME_HEAD else None
