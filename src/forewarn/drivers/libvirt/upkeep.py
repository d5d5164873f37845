"""Upkeep of hosts while they are reachable: copy definitions and remove stale domains.

An unreachable host keeps the domains of its machines and may start them when it comes back. forewarn may have
recovered the machines on other hosts by then. A recovered domain notes where a stale one may be
(`definitions.py`). When that host is reachable again, the driver powers the stale domain off and undefines
it, but never while it might be the machine's only domain.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.drivers.libvirt import disks
from forewarn.drivers.libvirt.domain_view import DomainState, DomainView
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer
from forewarn.drivers.libvirt.step_hosts import LibvirtContext

log = logging.getLogger(__name__)

# The interval at which the driver looks at all domains of a host, in seconds.
SCAN_EVERY = 600.0
# The longest wait for upkeep, in seconds: the caller must soon report the host as reachable.
WAIT = 2.0


class Upkeep:
    """Does the upkeep of hosts."""

    def __init__(
        self, context: LibvirtContext, *, exclusive: Callable[[str], AbstractContextManager[bool]]
    ) -> None:
        """Take a context manager that excludes concurrent work on one machine or host."""
        self._context = context
        self._exclusive = exclusive
        self._lock = threading.Lock()
        self._scanned_at: dict[HostName, float] = {}  # owned by the thread that works on the host
        # Domains with events, and when; guarded by the lock.
        self._changed: dict[str, float] = {}

    def changed(self, uuid: str) -> None:
        """Record an event of a domain, whose definition may have changed."""
        if self._context.copies.enabled:
            with self._lock:
                self._changed[uuid] = time.monotonic()

    def run(self, hypervisor: Hypervisor, host: Host) -> None:
        """Do the upkeep of a host; long upkeep goes on in the background."""
        name = f"forewarn-libvirt-upkeep-{host.name}"
        thread = threading.Thread(target=self._run, args=(hypervisor, host), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            log.info("the upkeep of %s is postponed: %s", host.name, error)
            return
        thread.join(WAIT)

    def _run(self, hypervisor: Hypervisor, host: Host) -> None:
        with self._exclusive(f"upkeep of {host.name}") as exclusive:
            if not exclusive:
                return
            try:
                self._do(hypervisor, host)
            except (NoLibvirtAnswer, LibvirtRefused) as error:
                log.info("the upkeep of %s is postponed: %s", host.name, error)
            except Exception:
                log.exception("the upkeep of %s failed", host.name)

    def _do(self, hypervisor: Hypervisor, host: Host) -> None:
        now = time.monotonic()
        scans = now - self._scanned_at.get(host.name, -SCAN_EVERY) >= SCAN_EVERY
        if scans:
            for domain in hypervisor.domains():
                try:
                    self._context.stale.note(domain.uuid, domain.stale_on(), current_host=host)
                except LibvirtRefused as error:
                    log.info("%s does not return the note of %s: %s", host.name, domain.uuid, error)
        self._remove_stale(hypervisor)
        if scans:
            self._copy_all(hypervisor)
            self._scanned_at[host.name] = now
        else:
            self._copy_changed(hypervisor, now)

    # Copies of definitions

    def _copy_all(self, hypervisor: Hypervisor) -> None:
        copies = self._context.copies
        if not copies.enabled:
            return
        domains = hypervisor.domains()
        for domain in domains:
            self._copy(domain, hypervisor)
        copies.prune(hypervisor.host, [domain.uuid for domain in domains], now=self._context.now())

    def _copy_changed(self, hypervisor: Hypervisor, now: float) -> None:
        with self._lock:
            # Forget domains that no host has any more.
            self._changed = {uuid: at for uuid, at in self._changed.items() if now - at < SCAN_EVERY}
            changed = dict(self._changed)
        for uuid, at in changed.items():
            domain = hypervisor.find(uuid)
            if domain is not None and self._copy(domain, hypervisor):
                with self._lock:
                    if self._changed.get(uuid) == at:
                        del self._changed[uuid]

    def _copy(self, domain: Domain, hypervisor: Hypervisor) -> bool:
        """Copy the definition of a domain, unless the domain is stale or migrating; return success."""
        if domain.uuid in self._context.stale.of(hypervisor.host):
            return False
        try:
            view = domain.view()
            if view.migrating or not view.persistent:
                return False
            self._context.copies.write(domain.uuid, domain.xml(inactive=True), host=hypervisor.host)
        except (LibvirtRefused, OSError) as error:
            log.warning("cannot copy the definition of %s: %s", domain.uuid, error)
            return False
        return True

    # Stale domains

    def _remove_stale(self, hypervisor: Hypervisor) -> None:
        """Remove the stale domains of a reachable host; retry later where that is not possible."""
        for uuid, current_host in self._context.stale.of(hypervisor.host).items():
            with self._exclusive(uuid) as exclusive:
                if not exclusive:
                    continue
                try:
                    stale_on = self._settle(uuid, hypervisor, current_host)
                except (NoLibvirtAnswer, LibvirtRefused) as error:
                    log.info("%s keeps the stale domain %s: %s", hypervisor.host, uuid, error)
                else:
                    self._context.stale.note(uuid, stale_on, current_host=current_host)

    def _settle(self, uuid: str, old: Hypervisor, current_host: Host) -> frozenset[HostName]:
        """Remove a stale domain if that is safe; return the hosts that may still have one."""
        new = self._context.connections.get(current_host)
        current = new.find(uuid)
        if current is None:
            return frozenset()  # it has moved; the next scan of its host finds it
        stale_on = current.stale_on()
        if old.host not in stale_on:
            return stale_on
        stale = old.find(uuid)
        if (
            stale is not None and old.host not in stale.stale_on()
        ):  # with the note, it is the recovered domain
            stale.disable_autostart()
            if not is_superseded(stale.view(), current.view()):
                return stale_on
            self._remove(stale, current, old, new)
        stale_on -= {old.host}
        current.write_stale_on(stale_on)
        return stale_on

    def _remove(self, stale: Domain, current: Domain, old: Hypervisor, new: Hypervisor) -> None:
        view = stale.view()
        shared = self._context.options.shared_paths
        unused = disks.recreated(current.definition(inactive=True), old, new, shared=shared)
        if view.active:
            log.warning(
                "%s runs %s, which was recovered on %s: powering it off", old.host, stale.uuid, new.host
            )
            stale.power_off()
        if view.persistent:  # a transient domain is gone when it is off
            stale.undefine()
        disks.delete(unused, on=old)
        log.info("removed stale domain %s from %s; it was recovered on %s", stale.uuid, old.host, new.host)


def is_superseded(stale: DomainView, current: DomainView) -> bool:
    """Return whether a stale domain may be removed, because the recovered domain is sure to stay."""
    moving = current.job is not None or current.migrating or stale.job is not None or stale.migrating
    if moving or not current.persistent:
        return False
    return current.state is DomainState.RUNNING or not stale.active
