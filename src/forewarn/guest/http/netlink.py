"""Questions to the kernel about the network: is an address on a link of ours, and which MAC answers for it.

A question is one message on a netlink socket and its answer is there at once, in some ten microseconds,
however large the tables are.
"""

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

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
    """A socket to the kernel's routes and neighbours; where there is none, nothing is known."""

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
