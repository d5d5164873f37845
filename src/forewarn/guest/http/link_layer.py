"""The MAC that a connection was opened from, where that says who calls.

The kernel keeps the frame that opened a connection for us (TCP_SAVE_SYN): its sender is a fact of that very
connection. The neighbour table is not: guests write it, and one that claims another's address there must
neither be taken for it nor silence it. So the table is asked only where the frame was not kept, as under a
flood of openings.

On a way over a router the MAC is the router's and says nothing; so only callers on a link of ours are asked
about. What cannot be told is None, and holds against nobody.
"""

import contextlib
import ipaddress
import socket
import struct
import sys
import time
from asyncio import BaseTransport
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, bits of the destination, …, type of the route, flags
_NEIGHBOUR = struct.Struct("=BBHiHBB")  # family, …, interface, state, flags, type
_ATTRIBUTE = struct.Struct("=HH")  # length, type

_REQUEST = 1
_GET_ROUTE, _NEW_ROUTE, _GET_NEIGHBOUR, _NEW_NEIGHBOUR = 26, 24, 30, 28
_TO, _THROUGH, _GATEWAY, _VIA = 1, 4, 5, 18  # of a route: the destination, its interface, who passes it on
_ADDRESS, _MAC = 1, 2  # of a neighbour
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_UNICAST = 1  # a route to others, unlike one to ourselves
_LONGEST_ANSWER = 16 * 1024
# The kernel answers at once; whoever does not is not the kernel we know, and says nothing.
_PATIENCE = 0.1


@dataclass(frozen=True, slots=True)
class Link:
    """The interface behind which an address is to be found without anybody passing packets on."""

    interface: int


class Netlink:
    """A socket to the kernel's routes and neighbours; where there is none, nothing is known.

    A question is one message, and its answer is there at once: in some ten microseconds, however large the
    tables are.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None  # opened when something is asked
        self._asked = 0

    def link_to(self, address: str) -> Link | None:
        """Return the link on which an address is; None if it is farther away, our own, or unknown."""
        wanted = ipaddress.ip_address(address)
        head = _ROUTE.pack(_FAMILIES[wanted.version], wanted.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
        answer = self._ask(_GET_ROUTE, head + _attribute(_TO, wanted.packed), _NEW_ROUTE)
        if answer is None or _ROUTE.unpack_from(answer)[7] != _UNICAST:
            return None
        said = dict(_attributes(answer[_ROUTE.size :]))
        if _GATEWAY in said or _VIA in said or _THROUGH not in said:
            return None
        return Link(int.from_bytes(said[_THROUGH], sys.byteorder))

    def mac_of(self, address: str, link: Link) -> bytes | None:
        """Return the MAC that now stands for an address on a link, as its guests have said."""
        wanted = ipaddress.ip_address(address)
        head = _NEIGHBOUR.pack(_FAMILIES[wanted.version], 0, 0, link.interface, 0, 0, 0)
        answer = self._ask(_GET_NEIGHBOUR, head + _attribute(_ADDRESS, wanted.packed), _NEW_NEIGHBOUR)
        return None if answer is None else dict(_attributes(answer[_NEIGHBOUR.size :])).get(_MAC)

    def close(self) -> None:
        """Ask no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, kind: int, body: bytes, expected: int) -> bytes | None:
        """Return the body of the answer; None if there is none of the expected kind."""
        self._asked = (self._asked + 1) & 0xFFFFFFFF
        try:
            kernel = self._open()
            kernel.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST, self._asked, 0) + body)
            while True:
                answer = kernel.recv(_LONGEST_ANSWER)
                length, said, _, sequence, _ = _HEADER.unpack_from(answer)
                if sequence == self._asked:  # what is older was not waited for
                    return answer[_HEADER.size : length] if said == expected else None
        except (OSError, AttributeError):  # systems other than Linux have no such socket
            return None

    def _open(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self._socket.settimeout(_PATIENCE)
        return self._socket


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value  # addresses are whole words long


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


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
