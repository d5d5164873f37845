"""The options of the libvirt driver: `[drivers.libvirt]`."""

from dataclasses import dataclass
from datetime import timedelta

from forewarn.core.basic_types import HostName
from forewarn.drivers.driver_setup import CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LibvirtOptions(CallOptions):
    """Time limits of guests, and how machines migrate."""

    #: How long a machine is suspended for a freeze in place.
    freeze_for: timedelta = timedelta(seconds=2)
    # Azure gives an evicted guest 30 seconds after its notice. An orderly shutdown takes longer.
    #: Time for a guest to shut down before it is powered off.
    shutdown_for: timedelta = timedelta(minutes=1)
    #: Time for the guest agent to report a new boot before the machine is reset.
    reboot_for: timedelta = timedelta(minutes=2)
    #: Time after which a live migration is cancelled.
    migrate_for: timedelta = timedelta(minutes=30)
    #: Bandwidth of a live migration in MiB/s. 0: libvirt's default.
    bandwidth: int = 0
    #: Slow down a guest that writes faster than its memory can be copied.
    auto_converge: bool = True
    #: URI by which hosts reach each other, with `{host}` for the name. Default: the host's `uri`.
    peer_uri: str = ""
    #: Destination of memory, such as `tcp://{host}`. Default: the target chooses.
    migration_uri: str = ""
    #: Allow migration with disks that libvirt does not know to be shared, or that are cached.
    unsafe_migration: bool = False
    #: Directories that are the same on all hosts.
    shared_paths: tuple[str, ...] = ()
    #: Terminate undefines the domain.
    destroy: bool = False
    #: Directory for copies of definitions, to recover machines of lost hosts.
    definitions: str = ""
    #: Timeout of connecting to a host.
    connect_for: timedelta = timedelta(seconds=10)
    #: Interval of keepalive messages.
    keepalive: timedelta = timedelta(seconds=5)

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
