"""DHCP option 245: the address of the metadata endpoint, as different DHCP clients store it in leases.

Azure sends it to machines outside a virtual network. `a8:3f:81:10` is 168.63.129.16.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Address

OPTION = 245

_BLOCK = re.compile(r"^\s*lease\s*\{(.*?)^\s*\}", re.MULTILINE | re.DOTALL)
# dhclient names an unknown option `unknown-245`, OpenBSD's dhclient `option-245`. Printable bytes are written
# as a quoted string.
_OPTION = re.compile(
    rf'^\s*option\s+(?:unknown|option)-{OPTION}\s+(?:([0-9a-fA-F:]+)|"(.*)")\s*;', re.MULTILINE
)
_EXPIRE = re.compile(r"^\s*expire\s+([^;]+);", re.MULTILINE)
_NETWORKD = re.compile(rf"^OPTION_{OPTION}=([0-9a-fA-F]+)\s*$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)

# In the Windows registry an option is five numbers (code, class, length, vendor, expiry) and its bytes,
# padded to a multiple of four.
_REGISTRY_HEAD = struct.Struct("<5I")
_ALIGNMENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease with option 245."""

    address: str
    expires: datetime | None = None  # None: never, or unknown

    def holds(self, now: datetime) -> bool:
        """Whether the lease has not expired."""
        return self.expires is None or now < self.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSource:
    """A file or registry key with leases, and its leases with option 245, oldest first."""

    where: str
    leases: tuple[Lease, ...] = ()
    trouble: str | None = None  # why it could not be read


def current(leases: Iterable[Lease], *, now: datetime) -> Lease | None:
    """Return the last lease that has not expired."""
    return next((lease for lease in reversed(tuple(leases)) if lease.holds(now)), None)


def parse_dhclient(text: str) -> tuple[Lease, ...]:
    """Parse the leases of dhclient on Linux or OpenBSD, oldest first."""
    found = []
    for block in _BLOCK.findall(text):
        options = _OPTION.findall(block)
        address = _address(_bytes(*options[-1])) if options else None
        if address is not None:
            found.append(Lease(address=address, expires=_expiry(block)))
    return tuple(found)


def parse_networkd(text: str) -> tuple[Lease, ...]:
    """Parse the lease of systemd-networkd, which removes the file when the lease expires."""
    digits = _NETWORKD.findall(text)
    even = [each for each in digits if len(each) % 2 == 0]
    address = _address(bytes.fromhex(even[-1])) if even else None
    return () if address is None else (Lease(address=address),)


def parse_registry(data: bytes) -> tuple[Lease, ...]:
    """Parse the value `DhcpInterfaceOptions` of a network interface in the Windows registry."""
    found, offset = [], 0
    while offset + _REGISTRY_HEAD.size <= len(data):
        code, _, length, vendor, expires = _REGISTRY_HEAD.unpack_from(data, offset)
        offset += _REGISTRY_HEAD.size
        address = _address(data[offset : offset + length])
        if code == OPTION and not vendor and address is not None:
            found.append(Lease(address=address, expires=datetime.fromtimestamp(expires, UTC)))
        offset += -(-length // _ALIGNMENT) * _ALIGNMENT
    return tuple(found)


def _bytes(pairs: str, text: str) -> bytes:
    if not pairs:
        plain = _ESCAPED.sub(
            lambda found: chr(int(found[1], 8) & 0xFF) if len(found[1]) > 1 else found[1], text
        )
        return plain.encode("latin-1", errors="replace")
    # dhclient may omit a leading zero.
    numbers = [int(pair, 16) if pair else 0 for pair in pairs.split(":")]
    return bytes(numbers) if max(numbers) < 1 << 8 else b""


def _address(data: bytes) -> str | None:
    return str(IPv4Address(data)) if len(data) == IPv4Address(0).max_prefixlen // 8 else None


def _expiry(block: str) -> datetime | None:
    """Parse the expiry of a lease: `5 2026/01/02 12:00:00` in UTC, `epoch 1767355200`, or `never`."""
    found = _EXPIRE.findall(block)
    words = found[-1].split() if found else ["never"]
    try:
        if words[0] == "never":
            return None
        if words[0] == "epoch":
            return datetime.fromtimestamp(int(words[1]), UTC)
        return datetime.strptime(f"{words[1]} {words[2]}", "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
    except (ValueError, IndexError, OverflowError, OSError):
        # The address is still worth a try.
        return None
