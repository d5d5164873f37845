"""What differs between systems: where a DHCP client keeps its leases.

Nothing here, and nothing else in the SDK, imports at once what only some systems have. The Windows half was
written from documentation and was not run there.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from forewarn.clock import SystemClock
from forewarn.sdk.leases import Lease, parse_dhclient, parse_networkd, parse_registry

DEFAULT_URL = "http://169.254.169.254"

LEASE_FILES: Mapping[str, Callable[[str], tuple[Lease, ...]]] = {
    "var/lib/dhcp/dhclient*.leases": parse_dhclient,  # Debian, old Ubuntu
    "var/lib/dhclient/dhclient*.lease": parse_dhclient,  # Red Hat
    "var/lib/dhclient/dhclient*.leases": parse_dhclient,
    "var/lib/NetworkManager/dhclient-*.lease": parse_dhclient,
    "run/systemd/netif/leases/*": parse_networkd,
    "var/db/dhclient.leases.*": parse_dhclient,  # OpenBSD
}
REGISTRY_KEY = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
REGISTRY_VALUE = "DhcpInterfaceOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSource:
    """A place where leases are kept, and those with option 245 in it, oldest first."""

    place: str
    leases: tuple[Lease, ...] = ()
    trouble: str | None = None  # why it could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All that a machine knows about where its endpoint is."""

    now: datetime
    environ: Mapping[str, str] = field(default_factory=dict)
    lease_sources: Sequence[LeaseSource] = ()
    default_url: str = DEFAULT_URL


def surroundings() -> Surroundings:
    """Look around in this machine."""
    sources = tuple(_registry() if sys.platform == "win32" else lease_files(Path("/")))
    return Surroundings(now=SystemClock().now(), environ=dict(os.environ), lease_sources=sources)


def lease_files(root: Path) -> Iterator[LeaseSource]:
    """Read all lease files, the one that was written last at the end."""
    found = [(path, parse) for pattern, parse in LEASE_FILES.items() for path in root.glob(pattern)]
    for path, parse in sorted(found, key=lambda each: (_written(each[0]), each[0])):
        try:
            leases = parse(path.read_text(encoding="utf-8", errors="replace"))
            yield LeaseSource(place=str(path), leases=leases)
        except OSError as error:
            yield LeaseSource(place=str(path), trouble=error.strerror or str(error))


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _registry() -> Iterator[LeaseSource]:
    """Read what Windows' DHCP client has saved for each network interface."""
    if sys.platform != "win32":
        return
    import winreg

    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, REGISTRY_KEY) as interfaces:
        for index in range(winreg.QueryInfoKey(interfaces)[0]):
            name = winreg.EnumKey(interfaces, index)
            place = rf"HKLM\{REGISTRY_KEY}\{name}\{REGISTRY_VALUE}"
            try:
                with winreg.OpenKey(interfaces, name) as interface:
                    data, _ = winreg.QueryValueEx(interface, REGISTRY_VALUE)
                yield LeaseSource(place=place, leases=parse_registry(bytes(data)))
            except FileNotFoundError:
                continue  # an interface without DHCP
            except OSError as error:
                yield LeaseSource(place=place, trouble=str(error))
