"""The MAC address that a connection was opened from.

The kernel saves the frame with the SYN of a connection (TCP_SAVE_SYN), and its sender is the caller. The
neighbour table is less reliable: guests write it, and a guest can claim another's address there. It is read
only if the frame was not saved, for example during a SYN flood.

Behind a router the MAC is the router's, so only callers on a local link are checked. An unknown MAC is None
and never leads to a refusal.
"""

import contextlib
import ipaddress
import socket
import struct
import sys
import time
from asyncio import BaseTransport
from collections.abc import Iterator
from typing import Any

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, prefix length of the destination, …, type of the route, flags
_NEIGHBOUR = struct.Struct("=BBHiHBB")  # family, …, interface, state, flags, type
_ATTRIBUTE = struct.Struct("=HH")  # length, type

_REQUEST = 1
_GET_ROUTE, _NEW_ROUTE, _GET_NEIGHBOUR, _NEW_NEIGHBOUR = 26, 24, 30, 28
_TO, _THROUGH, _GATEWAY, _VIA = (
    1,
    4,
    5,
    18,
)  # of a route: destination, interface, two kinds of next hop
_ADDRESS, _MAC = 1, 2  # of a neighbour
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_UNICAST = 1  # a route to another host, not to an own address
_LONGEST_ANSWER = 16 * 1024
# The kernel answers at once, in seconds.
_TIMEOUT = 0.1


class Netlink:
    """A netlink socket for routes and neighbours; where the system has none, every query returns None.

    A query takes about ten microseconds, independent of the size of the tables.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None  # opened by the first query
        self._asked = 0

    def link_to(self, address: str) -> int | None:
        """Return the interface of the link with an address; None if it is routed, our own, or unknown."""
        wanted = ipaddress.ip_address(address)
        head = _ROUTE.pack(_FAMILIES[wanted.version], wanted.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
        answer = self._ask(_GET_ROUTE, head + _attribute(_TO, wanted.packed), _NEW_ROUTE)
        if answer is None or _ROUTE.unpack_from(answer)[7] != _UNICAST:
            return None
        found = dict(_attributes(answer[_ROUTE.size :]))
        if _GATEWAY in found or _VIA in found or _THROUGH not in found:
            return None
        return int.from_bytes(found[_THROUGH], sys.byteorder)

    def mac_of(self, address: str, interface: int) -> bytes | None:
        """Return the MAC of an address on a link, from the neighbour table."""
        wanted = ipaddress.ip_address(address)
        head = _NEIGHBOUR.pack(_FAMILIES[wanted.version], 0, 0, interface, 0, 0, 0)
        answer = self._ask(_GET_NEIGHBOUR, head + _attribute(_ADDRESS, wanted.packed), _NEW_NEIGHBOUR)
        return None if answer is None else dict(_attributes(answer[_NEIGHBOUR.size :])).get(_MAC)

    def close(self) -> None:
        """Close the socket."""
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
                length, received, _, sequence, _ = _HEADER.unpack_from(answer)
                if sequence == self._asked:  # an older answer came after its timeout
                    return answer[_HEADER.size : length] if received == expected else None
        except (OSError, AttributeError):  # systems other than Linux have no such socket
            return None

    def _open(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self._socket.settimeout(_TIMEOUT)
        return self._socket


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value  # addresses need no padding


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


# From linux/tcp.h: save the SYN frames, including the link layer.
_SAVE_SYN, _SAVED_SYN = 27, 28
_WITH_LINK_LAYER = 2
_FRAME_HEAD = 14  # receiver, sender, type
_NO_MAC = bytes(6)  # the sender of a frame that was never on a link
# How long routes are cached: networks seldom change.
_KNOWN_SECONDS = 10.0
_MOST_KNOWN = 100_000


def save_syn_frames(listening: socket.socket) -> None:
    """Let the kernel save the SYN frames of a socket's connections, if it can."""
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.IPPROTO_TCP, _SAVE_SYN, _WITH_LINK_LAYER)


class LinkLayer:
    """Looks up the MAC addresses of callers. Lives on the guest loop."""

    def __init__(self, *, checked: bool) -> None:
        self._netlink = Netlink() if checked else None
        self._links: dict[str, tuple[float, int | None]] = {}

    def mac(self, transport: BaseTransport, address: str) -> str | None:
        """Return the MAC of a caller; None if it is unknown or a router's."""
        if self._netlink is None or (link := self._link(self._netlink, address)) is None:
            return None
        sender = _sender(transport.get_extra_info("socket")) or self._netlink.mac_of(address, link)
        return None if sender is None or sender == _NO_MAC else sender.hex(":")

    def close(self) -> None:
        """Close the netlink socket."""
        if self._netlink is not None:
            self._netlink.close()

    def _link(self, netlink: Netlink, address: str) -> int | None:
        now = time.monotonic()
        until, link = self._links.get(address, (0.0, None))
        if now >= until:
            if len(self._links) >= _MOST_KNOWN:
                self._links.clear()
            link = netlink.link_to(address)
            self._links[address] = now + _KNOWN_SECONDS, link
        return link


def _sender(connected: Any) -> bytes | None:
    """Return the sender of the SYN frame of a connection; None if the frame was not saved."""
    try:
        frame: bytes = connected.getsockopt(socket.IPPROTO_TCP, _SAVED_SYN, _FRAME_HEAD * 16)
    except OSError:
        return None
    return frame[6:12] if len(frame) > _FRAME_HEAD else None
