"""The options of the libvirt driver: `[drivers.libvirt]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.core.basic_types import HostName
from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LibvirtOptions(CallOptions):
    """Time limits of guests, and how machines migrate."""

    freeze_for: timedelta = timedelta(seconds=2)  # how long a frozen machine is suspended
    # Azure gives an evicted guest 30 seconds after its notice. An orderly shutdown takes longer.
    shutdown_for: timedelta = timedelta(minutes=1)  # then the guest is powered off
    reboot_for: timedelta = timedelta(minutes=2)  # then the guest is reset
    migrate_for: timedelta = timedelta(minutes=30)  # then the live migration is aborted
    bandwidth: int = 0  # of a live migration, in MiB/s; 0: libvirt's default
    auto_converge: bool = True  # slow down a guest that writes faster than its memory can be copied
    # The URI by which a host's libvirt reaches another host, with {host} for its name. "": the host's `uri`.
    peer_uri: str = ""
    migration_uri: str = ""  # the destination of memory, such as tcp://{host}; "": the target chooses
    # Allow migration with disks that libvirt does not know to be shared, or that are cached.
    unsafe_migration: bool = False
    shared_paths: tuple[str, ...] = ()  # directories that are the same on all hosts
    destroy: bool = False  # Terminate undefines the domain
    definitions: str = ""  # a directory for copies of definitions, which Recover needs
    connect_for: timedelta = timedelta(seconds=10)  # timeout of connecting to a host
    keepalive: timedelta = timedelta(seconds=5)  # interval of keepalive messages

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)  # super() does not work in a class with slots
        if self.bandwidth < 0:
            raise ValueError("bandwidth: expected MiB/s, or 0")

    def peer(self, host: HostName, uri: str) -> str:
        """Return the URI by which other hosts reach a host."""
        return self.peer_uri.format(host=host) if self.peer_uri else uri

    def memory_uri(self, host: HostName) -> str | None:
        """Return the destination of a machine's memory; None if the target chooses."""
        return self.migration_uri.format(host=host) if self.migration_uri else None
