"""A domain of one host, as the driver sees and treats it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt import definitions
from forewarn.drivers.libvirt.definitions import (
    LEFT_NAMESPACE,
    LEFT_PREFIX,
    Definition,
    left_on_as_xml,
    read_left_on,
)
from forewarn.drivers.libvirt.library import Declined, boot_of
from forewarn.drivers.libvirt.sights import (
    MARK_NAMESPACE,
    MARK_PREFIX,
    DomainJob,
    DomainMark,
    DomainState,
    Seen,
    mark_as_xml,
    read_mark,
)

Asking: TypeAlias = Callable[[], AbstractContextManager[None]]
# VIR_DOMAIN_PAUSED_STARTING_UP: where a machine comes to, before it runs.
_STARTING_UP = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a machine migrates."""

    peer: str  # how its libvirt reaches the other
    uri: str | None = None  # where its memory is sent; None: as the other says
    bandwidth: int = 0  # MiB/s; 0: as libvirt does by itself
    auto_converge: bool = True
    unsafe: bool = False
    disks: tuple[str, ...] = ()  # that are copied


class Domain:
    """A domain; every call may raise NoAnswer or Declined."""

    def __init__(self, library: Any, domain: Any, *, asking: Asking) -> None:
        """Take libvirt's domain, and what turns libvirt's errors into those two."""
        self._library = library
        self._asking = asking
        self._domain = domain

    @property
    def uuid(self) -> str:
        """What it is known by."""
        return str(self._domain.UUIDString())

    # What is seen of it

    def seen(self) -> Seen:
        """Return what it is doing."""
        with self._asking():
            state, reason = self._domain.state()
            active = bool(self._domain.isActive())
            persistent = bool(self._domain.isPersistent())
        if not active:
            return Seen(state=DomainState.OFF, mark=self.mark(), persistent=persistent)
        library = self._library
        # One that is about to go off still runs; one that has crashed is held until somebody looks.
        runs = state in (library.VIR_DOMAIN_RUNNING, library.VIR_DOMAIN_BLOCKED, library.VIR_DOMAIN_SHUTDOWN)
        return Seen(
            state=DomainState.RUNNING if runs else DomainState.PAUSED,
            run=self._domain.ID(),
            mark=self.mark(),
            job=self.job(),
            migrating=not runs and reason in (library.VIR_DOMAIN_PAUSED_MIGRATION, _STARTING_UP),
            persistent=persistent,
        )

    def mark(self) -> DomainMark | None:
        """Return the mark in its metadata."""
        xml = self._metadata(MARK_NAMESPACE)
        return None if xml is None else read_mark(xml)

    def left_on(self) -> frozenset[HostName]:
        """Return the hosts on which it was left behind when it was recovered here, as its metadata says."""
        xml = self._metadata(LEFT_NAMESPACE)
        return frozenset() if xml is None else read_left_on(xml)

    def _metadata(self, namespace: str) -> str | None:
        library = self._library
        flags = library.VIR_DOMAIN_AFFECT_CURRENT
        with self._asking():
            try:
                return str(self._domain.metadata(library.VIR_DOMAIN_METADATA_ELEMENT, namespace, flags))
            except library.libvirtError as error:
                if error.get_error_code() == library.VIR_ERR_NO_DOMAIN_METADATA:
                    return None
                raise

    def job(self) -> DomainJob | None:
        """Return the migration that it is leaving by."""
        library = self._library
        with self._asking():
            try:
                stats = self._domain.jobStats()
            except library.libvirtError as error:
                # All else says nothing of its job.
                if error.get_error_code() in (
                    library.VIR_ERR_OPERATION_UNSUPPORTED,  # this is where it goes to
                    library.VIR_ERR_OPERATION_INVALID,  # it has just gone off
                    library.VIR_ERR_NO_SUPPORT,
                ):
                    return None
                raise
        if stats.get("type", 0) == library.VIR_DOMAIN_JOB_NONE:
            return None
        if stats.get("operation") != library.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT:
            return None
        total, remaining = stats.get("data_total"), stats.get("data_remaining")
        if not total or remaining is None:
            return DomainJob()
        return DomainJob(progress=min(max(1 - remaining / total, 0.0), 1.0))

    def definition(self, *, inactive: bool = False) -> Definition:
        """Return what its XML says."""
        return definitions.read(self.xml(inactive=inactive))

    def xml(self, *, inactive: bool) -> str:
        """Return its XML, as it is or as it will be when it is started, with its secrets."""
        library = self._library
        kind = library.VIR_DOMAIN_XML_INACTIVE if inactive else 0
        with self._asking():
            return str(self._domain.XMLDesc(library.VIR_DOMAIN_XML_SECURE | kind))

    def boot(self) -> str:
        """Return what the guest agent calls this boot; "" if it does not say."""
        return boot_of(self._library, self._domain)

    def is_known(self) -> bool:
        """Return whether its host still has it."""
        with self._asking():
            try:
                self._domain.state()
            except self._library.libvirtError as error:
                if error.get_error_code() == self._library.VIR_ERR_NO_DOMAIN:
                    return False
                raise
        return True

    def addresses(self, *, by_agent: bool) -> Mapping[str, tuple[str, ...]]:
        """Return its addresses by MAC, as the guest agent or libvirt's own leases have them; or none."""
        library = self._library
        source = (
            library.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT
            if by_agent
            else library.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE
        )
        try:
            found = self._domain.interfaceAddresses(source)
        except library.libvirtError:
            return {}  # it boots, hangs, or has no such network: nothing is known now
        by_mac: dict[str, tuple[str, ...]] = {}
        for each in found.values():
            mac, told = (each.get("hwaddr") or "").lower(), each.get("addrs") or ()
            by_mac[mac] = (*by_mac.get(mac, ()), *(str(one["addr"]) for one in told))
        return by_mac

    def snapshots(self) -> int:
        """Return how many snapshots it has."""
        with self._asking():
            try:
                return int(self._domain.snapshotNum())
            except self._library.libvirtError as error:
                if error.get_error_code() == self._library.VIR_ERR_NO_SUPPORT:
                    return 0
                raise

    def has_saved_memory(self) -> bool:
        """Return whether it was saved, to go on from there when it is started."""
        with self._asking():
            return bool(self._domain.hasManagedSaveImage())

    def downtime(self) -> float | None:
        """Return the seconds that it stood still in the migration by which it came; None: not known."""
        library = self._library
        flags = library.VIR_DOMAIN_JOB_STATS_COMPLETED | library.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
        try:
            downtime = self._domain.jobStats(flags).get("downtime")
        except library.libvirtError:
            return None
        return None if downtime is None else downtime / 1000

    # What is done to it

    def write(self, mark: DomainMark) -> None:
        """Leave a mark, in what it is now and in what it will be when it is started again."""
        self._write_metadata(mark_as_xml(mark), prefix=MARK_PREFIX, namespace=MARK_NAMESPACE)

    def write_left_on(self, hosts: frozenset[HostName]) -> None:
        """Note on which hosts it was left behind; on none: nothing is noted."""
        xml = left_on_as_xml(hosts) if hosts else None
        self._write_metadata(xml, prefix=LEFT_PREFIX, namespace=LEFT_NAMESPACE)

    def _write_metadata(self, xml: str | None, *, prefix: str, namespace: str) -> None:
        library = self._library
        with self._asking():
            flags = 0
            if self._domain.isActive():
                flags |= library.VIR_DOMAIN_AFFECT_LIVE
            if self._domain.isPersistent():
                flags |= library.VIR_DOMAIN_AFFECT_CONFIG
            self._domain.setMetadata(library.VIR_DOMAIN_METADATA_ELEMENT, xml, prefix, namespace, flags)

    def keep_from_starting(self) -> None:
        """Have its host not start it by itself, when that starts."""
        with self._asking():
            if self._domain.isPersistent():
                self._domain.setAutostart(0)

    def suspend(self) -> None:
        """Stop its processors."""
        with self._asking():
            self._domain.suspend()

    def resume(self) -> None:
        """Let its processors go on."""
        with self._asking():
            self._domain.resume()

    def press_power_button(self) -> None:
        """Tell the guest by ACPI to shut down; whether it does is another matter."""
        library = self._library
        with self._asking():
            try:
                self._domain.shutdownFlags(library.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            except library.libvirtError as error:
                if error.get_error_code() not in (library.VIR_ERR_NO_SUPPORT, library.VIR_ERR_INVALID_ARG):
                    raise
                self._domain.shutdown()

    def shut_down_by_agent(self) -> None:
        """Have the guest agent shut down; returns when the guest is down, or after a minute."""
        with self._asking():
            self._domain.shutdownFlags(self._library.VIR_DOMAIN_SHUTDOWN_GUEST_AGENT)

    def reboot_by_agent(self) -> None:
        """Have the guest agent reboot; returns when the guest goes down, or after a minute."""
        with self._asking():
            self._domain.reboot(self._library.VIR_DOMAIN_REBOOT_GUEST_AGENT)

    def reset(self) -> None:
        """Reset it as by the button."""
        with self._asking():
            self._domain.reset()

    def power_off(self) -> None:
        """Switch it off."""
        with self._asking():
            self._domain.destroy()

    def start(self) -> None:
        """Switch it on."""
        with self._asking():
            self._domain.create()

    def undefine(self) -> None:
        """Forget it; its disks and the firmware's variables stay."""
        library = self._library
        keep = library.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM | library.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        with self._asking():
            try:
                self._domain.undefineFlags(keep)
            except library.libvirtError as error:
                if error.get_error_code() not in (library.VIR_ERR_NO_SUPPORT, library.VIR_ERR_INVALID_ARG):
                    raise
                self._domain.undefine()

    def migrate(self, route: Route) -> None:
        """Migrate it while it runs; its libvirt does it, also if this process dies. Returns at the end."""
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
        with self._asking():
            self._domain.migrateToURI3(route.peer, params, flags)

    def abort(self) -> None:
        """Break its migration off."""
        try:
            with self._asking():
                self._domain.abortJob()
        except Declined:
            pass  # it has just ended
