"""What the settings may say of the driver: `[drivers.libvirt]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.core.basic_types import HostName
from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LibvirtOptions(CallOptions):
    """How long guests are given, and how machines move."""

    freeze_for: timedelta = timedelta(seconds=2)  # how long a machine that stays is suspended
    # Azure gives a guest that is evicted 30 seconds after its notice; an orderly shutdown takes longer.
    shutdown_for: timedelta = timedelta(minutes=1)  # for a guest to shut down; then it is powered off
    reboot_for: timedelta = timedelta(minutes=2)  # for a guest to be up again; then it is reset
    migrate_for: timedelta = timedelta(minutes=30)  # for a live migration; then it is broken off
    bandwidth: int = 0  # of a live migration, in MiB/s; 0: as libvirt does by itself
    auto_converge: bool = True  # slow a guest down that writes faster than its memory can be copied
    # How a host's libvirt reaches another's; {host} is the name of the host. "": by the other's own `uri`.
    peer_uri: str = ""
    migration_uri: str = ""  # where memory is sent, as tcp://{host}; "": as the other's libvirt says
    # libvirt keeps machines from moving whose disks it does not know to be shared, or that are cached.
    unsafe_migration: bool = False
    shared_paths: tuple[str, ...] = ()  # directories that are the same on all hosts
    destroy: bool = False  # whether Terminate undefines the domain
    definitions: str = ""  # a directory for copies of definitions, by which Recover brings machines back
    connect_for: timedelta = timedelta(seconds=10)  # for a host to answer
    keepalive: timedelta = timedelta(seconds=5)  # silence after which it is asked whether it is there

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)  # super() does not work in a class with slots
        if self.bandwidth < 0:
            raise ValueError("bandwidth: expected MiB/s, or 0")

    def peer(self, host: HostName, uri: str) -> str:
        """Return how another host's libvirt reaches a host."""
        return self.peer_uri.format(host=host) if self.peer_uri else uri

    def sent_to(self, host: HostName) -> str | None:
        """Return where the memory of a machine that moves to a host is sent; None: as that says."""
        return self.migration_uri.format(host=host) if self.migration_uri else None
