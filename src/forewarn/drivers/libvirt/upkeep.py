"""What is looked after whenever a host is reached: copies of definitions, and what was left behind there.

A host that cannot be reached keeps the domains of its machines, and may start them by itself when it comes
back. The domain that was made elsewhere notes where that may be (`definitions.py`). Whenever a host is
reached, what was left on it is powered off and undefined, but never while it might be the machine's only one.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.drivers.libvirt import disks
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.kept import LeftBehind
from forewarn.drivers.libvirt.library import Declined, NoLibvirtAnswer
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.places import Tools
from forewarn.drivers.libvirt.sights import DomainState, Seen

log = logging.getLogger(__name__)

# How often all domains of a host are looked through, in seconds.
LOOK_EVERY = 600.0
# For what is to be done, in seconds: a host has only a little longer to answer that it is reached.
WAIT = 2.0


class Upkeep:
    """Looks after hosts, each time one is reached."""

    def __init__(self, tools: Tools, *, alone: Callable[[str], AbstractContextManager[bool]]) -> None:
        """Take what keeps calls about one machine, or the upkeep of one host, apart."""
        self._tools = tools
        self._alone = alone
        self._lock = threading.Lock()
        self._looked_at: dict[HostName, float] = {}  # of each host the thread at work there has it
        # Domains that there was news of, and when; guarded by the lock.
        self._changed: dict[str, float] = {}

    def changed(self, uuid: str) -> None:
        """Take note that something has happened to a domain: its definition may have changed."""
        if self._tools.kept.kept:
            with self._lock:
                self._changed[uuid] = time.monotonic()

    def look_after(self, hypervisor: Hypervisor, host: Host) -> None:
        """Do what is to be done on a host, unless that is under way; what takes long goes on by itself.

        Whether the host is reached is not told by this.
        """
        name = f"forewarn-libvirt-upkeep-{host.name}"
        thread = threading.Thread(target=self._run, args=(hypervisor, host), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            log.info("%s is looked after later: %s", host.name, error)
            return
        thread.join(WAIT)

    def _run(self, hypervisor: Hypervisor, host: Host) -> None:
        with self._alone(f"upkeep of {host.name}") as alone:
            if not alone:
                return
            try:
                self._look_after(hypervisor, host)
            except (NoLibvirtAnswer, Declined) as error:
                log.info("%s is looked after later: %s", host.name, error)
            except Exception:
                log.exception("%s could not be looked after", host.name)

    def _look_after(self, hypervisor: Hypervisor, host: Host) -> None:
        now = time.monotonic()
        looks_through = now - self._looked_at.get(host.name, -LOOK_EVERY) >= LOOK_EVERY
        if looks_through:
            self._read_notes(hypervisor, host)
        clear_up(
            hypervisor,
            self._tools.left,
            connections=self._tools.connections,
            options=self._tools.options,
            alone=self._alone,
        )
        if looks_through:
            self._copy_all(hypervisor)
            self._looked_at[host.name] = now
        else:
            self._copy_changed(hypervisor, now)

    def _read_notes(self, hypervisor: Hypervisor, host: Host) -> None:
        for domain in hypervisor.domains():
            try:
                self._tools.left.note(domain.uuid, domain.left_on(), instead=host)
            except Declined as error:
                log.info("%s does not tell what %s left behind: %s", host.name, domain.uuid, error)

    def _copy_all(self, hypervisor: Hypervisor) -> None:
        if not self._tools.kept.kept:
            return
        domains = hypervisor.domains()
        for domain in domains:
            self._copy(domain, hypervisor)
        known = [domain.uuid for domain in domains]
        self._tools.kept.prune(hypervisor.host, known, now=self._tools.now())

    def _copy_changed(self, hypervisor: Hypervisor, now: float) -> None:
        with self._lock:
            # Of what no host has any more there is nothing to copy.
            self._changed = {uuid: at for uuid, at in self._changed.items() if now - at < LOOK_EVERY}
            changed = dict(self._changed)
        for uuid, at in changed.items():
            domain = hypervisor.find(uuid)
            if domain is not None and self._copy(domain, hypervisor):
                with self._lock:
                    if self._changed.get(uuid) == at:
                        del self._changed[uuid]

    def _copy(self, domain: Domain, hypervisor: Hypervisor) -> bool:
        """Copy a definition; return whether it is copied. One that is in the middle of a migration is not."""
        if domain.uuid in self._tools.left.of(hypervisor.host):
            return False  # what counts is elsewhere
        try:
            seen = domain.seen()
            if seen.migrating or not seen.persistent:
                return False
            self._tools.kept.keep(domain.uuid, domain.xml(inactive=True), host=hypervisor.host)
        except (Declined, OSError) as error:
            log.warning("the definition of %s is not copied: %s", domain.uuid, error)
            return False
        return True


def clear_up(
    hypervisor: Hypervisor,
    left: LeftBehind,
    *,
    connections: Connections,
    options: LibvirtOptions,
    alone: Callable[[str], AbstractContextManager[bool]],
) -> None:
    """Clear away what was left on a host that can be reached; what cannot be now is tried again later."""
    for uuid, host in left.of(hypervisor.host).items():
        with alone(uuid) as may:
            if not may:
                continue
            try:
                instead = connections.get(host)
                noted = _settle(uuid, hypervisor, instead, options)
            except (NoLibvirtAnswer, Declined) as error:
                log.info("%s keeps what is left there of %s: %s", hypervisor.host, uuid, error)
            else:
                left.note(uuid, noted, instead=host)


def _settle(
    uuid: str, left_on: Hypervisor, instead: Hypervisor, options: LibvirtOptions
) -> frozenset[HostName]:
    """Clear one domain away if that can be done; return the hosts on which it may be left all the same."""
    kept = instead.find(uuid)
    if kept is None:
        return frozenset()  # it has moved: it is found again where it is
    noted = kept.left_on()
    if left_on.host not in noted:
        return noted
    left = left_on.find(uuid)
    if left is not None and left_on.host not in left.left_on():  # one that has come back here has the note
        left.keep_from_starting()
        if not is_superseded(left.seen(), kept.seen()):
            return noted
        _clear(left, kept, left_on, instead, options)
    noted -= {left_on.host}
    kept.write_left_on(noted)
    return noted


def is_superseded(left: Seen, kept: Seen) -> bool:
    """Return whether a domain that was left can go: the one that was made instead is sure to stay."""
    moving = kept.job is not None or kept.migrating or left.job is not None or left.migrating
    if moving or not kept.persistent:
        return False
    return kept.state is DomainState.RUNNING or not left.active


def _clear(
    left: Domain, kept: Domain, left_on: Hypervisor, instead: Hypervisor, options: LibvirtOptions
) -> None:
    seen = left.seen()
    definition = kept.definition(inactive=True)
    unused = disks.made_anew(definition, left_on, instead, shared=options.shared_paths)
    if seen.active:
        log.warning(
            "%s runs %s, which was recovered on %s: it is powered off", left_on.host, left.uuid, instead.host
        )
        left.power_off()
    if seen.persistent:  # else it went with its power
        left.undefine()
    disks.delete(unused, on=left_on)
    log.info("%s has forgotten %s, which was recovered on %s", left_on.host, left.uuid, instead.host)
