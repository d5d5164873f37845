"""A libvirt domain on one host."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt import definitions
from forewarn.drivers.libvirt.definitions import (
    STALE_NAMESPACE,
    STALE_PREFIX,
    Definition,
    read_stale_on,
    stale_on_as_xml,
)
from forewarn.drivers.libvirt.domain_view import (
    MARK_NAMESPACE,
    MARK_PREFIX,
    DomainJob,
    DomainMark,
    DomainState,
    DomainView,
    mark_as_xml,
    read_mark,
)
from forewarn.drivers.libvirt.library import LibvirtRefused, boot_of

T = TypeVar("T")
ConvertErrors: TypeAlias = Callable[[], AbstractContextManager[None]]
# VIR_DOMAIN_PAUSED_STARTING_UP: an incoming domain before it runs.
_STARTING_UP = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a domain migrates."""

    peer: str  # the URI of the target's libvirt
    uri: str | None = None  # the destination of the memory; None: the target chooses
    bandwidth: int = 0  # MiB/s; 0: libvirt's default
    auto_converge: bool = True
    unsafe: bool = False
    disks: tuple[str, ...] = ()  # disks to copy


class Domain:
    """A domain; every call may raise NoLibvirtAnswer or LibvirtRefused."""

    def __init__(self, library: Any, domain: Any, *, converted: ConvertErrors) -> None:
        """Take libvirt's domain, and the context manager that converts its errors."""
        self._library = library
        self._converted = converted
        self._domain = domain

    def _call(self, call: Callable[..., T], *args: Any) -> T:
        with self._converted():
            return call(*args)

    def _call_unless(self, codes: tuple[int, ...], call: Callable[..., T], *args: Any) -> T | None:
        """Return the result of a call; None if it fails with one of these error codes."""
        with self._converted():
            try:
                return call(*args)
            except self._library.libvirtError as error:
                if error.get_error_code() not in codes:
                    raise
                return None

    @property
    def uuid(self) -> str:
        """The domain's UUID."""
        return str(self._domain.UUIDString())

    # Reading

    def view(self) -> DomainView:
        """Return the state of the domain."""
        with self._converted():
            state, reason = self._domain.state()
            active = bool(self._domain.isActive())
            persistent = bool(self._domain.isPersistent())
        if not active:
            return DomainView(state=DomainState.OFF, mark=self.mark(), persistent=persistent)
        library = self._library
        # A domain that shuts down still runs. A crashed one is kept for a person to look at.
        runs = state in (library.VIR_DOMAIN_RUNNING, library.VIR_DOMAIN_BLOCKED, library.VIR_DOMAIN_SHUTDOWN)
        return DomainView(
            state=DomainState.RUNNING if runs else DomainState.PAUSED,
            run=self._domain.ID(),
            mark=self.mark(),
            job=self.job(),
            migrating=not runs and reason in (library.VIR_DOMAIN_PAUSED_MIGRATION, _STARTING_UP),
            persistent=persistent,
        )

    def mark(self) -> DomainMark | None:
        """Return the mark in the metadata."""
        xml = self._metadata(MARK_NAMESPACE)
        return None if xml is None else read_mark(xml)

    def stale_on(self) -> frozenset[HostName]:
        """Return the hosts that may have a stale domain of this machine, from the metadata."""
        xml = self._metadata(STALE_NAMESPACE)
        return frozenset() if xml is None else read_stale_on(xml)

    def _metadata(self, namespace: str) -> str | None:
        library = self._library
        return self._call_unless(
            (library.VIR_ERR_NO_DOMAIN_METADATA,),
            self._domain.metadata,
            library.VIR_DOMAIN_METADATA_ELEMENT,
            namespace,
            library.VIR_DOMAIN_AFFECT_CURRENT,
        )

    def job(self) -> DomainJob | None:
        """Return the outgoing migration."""
        library = self._library
        no_job = (
            library.VIR_ERR_OPERATION_UNSUPPORTED,  # an incoming migration
            library.VIR_ERR_OPERATION_INVALID,  # the domain has just stopped
            library.VIR_ERR_NO_SUPPORT,
        )
        stats = self._call_unless(no_job, self._domain.jobStats)
        if stats is None or stats.get("type", 0) == library.VIR_DOMAIN_JOB_NONE:
            return None
        if stats.get("operation") != library.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT:
            return None
        total, remaining = stats.get("data_total"), stats.get("data_remaining")
        if not total or remaining is None:
            return DomainJob()
        return DomainJob(progress=min(max(1 - remaining / total, 0.0), 1.0))

    def definition(self, *, inactive: bool = False) -> Definition:
        """Return the parsed XML."""
        return definitions.read(self.xml(inactive=inactive))

    def xml(self, *, inactive: bool) -> str:
        """Return the XML of the running domain, or of its next start, with secrets."""
        flags = self._library.VIR_DOMAIN_XML_INACTIVE if inactive else 0
        return str(self._call(self._domain.XMLDesc, self._library.VIR_DOMAIN_XML_SECURE | flags))

    def boot(self) -> str:
        """Return the guest's boot id, or "" if the guest agent does not answer."""
        return boot_of(self._library, self._domain)

    def exists(self) -> bool:
        """Return whether the host still has the domain."""
        return self._call_unless((self._library.VIR_ERR_NO_DOMAIN,), self._domain.state) is not None

    def addresses(self, *, by_agent: bool) -> Mapping[str, tuple[str, ...]]:
        """Return the addresses by MAC, from the guest agent or from libvirt's DHCP leases."""
        library = self._library
        source = (
            library.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT
            if by_agent
            else library.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE
        )
        try:
            found = self._domain.interfaceAddresses(source)
        except library.libvirtError:
            return {}  # the guest boots or hangs, or libvirt does not manage its network
        by_mac: dict[str, tuple[str, ...]] = {}
        for each in found.values():
            mac, addresses = (each.get("hwaddr") or "").lower(), each.get("addrs") or ()
            by_mac[mac] = (*by_mac.get(mac, ()), *(str(one["addr"]) for one in addresses))
        return by_mac

    def snapshots(self) -> int:
        """Count the snapshots."""
        return self._call_unless((self._library.VIR_ERR_NO_SUPPORT,), self._domain.snapshotNum) or 0

    def has_saved_memory(self) -> bool:
        """Return whether the domain resumes from saved memory at its next start."""
        return bool(self._call(self._domain.hasManagedSaveImage))

    def downtime(self) -> float | None:
        """Return the downtime of the migration by which the domain came, in seconds, if known."""
        library = self._library
        flags = library.VIR_DOMAIN_JOB_STATS_COMPLETED | library.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
        try:
            downtime = self._domain.jobStats(flags).get("downtime")
        except library.libvirtError:
            return None
        return None if downtime is None else downtime / 1000

    # Writing

    def write(self, mark: DomainMark) -> None:
        """Store a mark in the metadata, both live and persistent."""
        self._write_metadata(mark_as_xml(mark), prefix=MARK_PREFIX, namespace=MARK_NAMESPACE)

    def write_stale_on(self, hosts: frozenset[HostName]) -> None:
        """Store the hosts that may have a stale domain of this machine."""
        xml = stale_on_as_xml(hosts) if hosts else None
        self._write_metadata(xml, prefix=STALE_PREFIX, namespace=STALE_NAMESPACE)

    def _write_metadata(self, xml: str | None, *, prefix: str, namespace: str) -> None:
        library = self._library
        with self._converted():
            flags = 0
            if self._domain.isActive():
                flags |= library.VIR_DOMAIN_AFFECT_LIVE
            if self._domain.isPersistent():
                flags |= library.VIR_DOMAIN_AFFECT_CONFIG
            self._domain.setMetadata(library.VIR_DOMAIN_METADATA_ELEMENT, xml, prefix, namespace, flags)

    def disable_autostart(self) -> None:
        """Keep the host from starting the domain at boot."""
        with self._converted():
            if self._domain.isPersistent():
                self._domain.setAutostart(0)

    def suspend(self) -> None:
        """Pause the domain's processors."""
        self._call(self._domain.suspend)

    def resume(self) -> None:
        """Resume the domain's processors."""
        self._call(self._domain.resume)

    def press_power_button(self) -> None:
        """Ask the guest by ACPI to shut down; the guest may ignore it."""
        self._call_with_fallback(
            self._domain.shutdownFlags,
            self._library.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN,
            fallback=self._domain.shutdown,
        )

    def shut_down_by_agent(self) -> None:
        """Shut down through the guest agent; returns when the guest is off, or after a minute."""
        self._call(self._domain.shutdownFlags, self._library.VIR_DOMAIN_SHUTDOWN_GUEST_AGENT)

    def reboot_by_agent(self) -> None:
        """Reboot through the guest agent; returns when the guest goes down, or after a minute."""
        self._call(self._domain.reboot, self._library.VIR_DOMAIN_REBOOT_GUEST_AGENT)

    def reset(self) -> None:
        """Reset the domain as the reset button does."""
        self._call(self._domain.reset)

    def power_off(self) -> None:
        """Power the domain off."""
        self._call(self._domain.destroy)

    def start(self) -> None:
        """Start the domain."""
        self._call(self._domain.create)

    def undefine(self) -> None:
        """Undefine the domain; keep its disks and firmware variables."""
        library = self._library
        keep = library.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM | library.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        self._call_with_fallback(self._domain.undefineFlags, keep, fallback=self._domain.undefine)

    def _call_with_fallback(
        self, call: Callable[[int], object], flags: int, *, fallback: Callable[[], object]
    ) -> None:
        """Call with flags; if the hypervisor does not support them, call the fallback."""
        with self._converted():
            try:
                call(flags)
            except self._library.libvirtError as error:
                unsupported = (self._library.VIR_ERR_NO_SUPPORT, self._library.VIR_ERR_INVALID_ARG)
                if error.get_error_code() not in unsupported:
                    raise
                fallback()

    def migrate(self, route: Route) -> None:
        """Migrate the running domain; libvirt goes on even if this process dies. Returns at the end."""
        library = self._library
        flags = (
            library.VIR_MIGRATE_LIVE
            | library.VIR_MIGRATE_PEER2PEER
            | library.VIR_MIGRATE_PERSIST_DEST
            | library.VIR_MIGRATE_UNDEFINE_SOURCE
            | library.VIR_MIGRATE_ABORT_ON_ERROR
        )
        params: dict[str, Any] = {}
        if route.auto_converge:
            flags |= library.VIR_MIGRATE_AUTO_CONVERGE
        if route.unsafe:
            flags |= library.VIR_MIGRATE_UNSAFE
        if route.uri is not None:
            params[library.VIR_MIGRATE_PARAM_URI] = route.uri
        if route.bandwidth:
            params[library.VIR_MIGRATE_PARAM_BANDWIDTH] = route.bandwidth
        if route.disks:
            flags |= library.VIR_MIGRATE_NON_SHARED_DISK
            params[library.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = list(route.disks)
        self._call(self._domain.migrateToURI3, route.peer, params, flags)

    def abort(self) -> None:
        """Abort the migration; it may just have ended."""
        with suppress(LibvirtRefused):
            self._call(self._domain.abortJob)
