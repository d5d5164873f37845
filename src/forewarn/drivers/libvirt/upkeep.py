"""What is looked after whenever a host is reached: copies of definitions, and what was left behind there."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from forewarn.core.model.host import Host
from forewarn.core.words import HostName
from forewarn.drivers.libvirt import left_behind
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import Declined, NoAnswer
from forewarn.drivers.libvirt.places import Tools

log = logging.getLogger(__name__)

# How often all domains of a host are looked through, in seconds.
LOOK_EVERY = 600.0
# For what is to be done, in seconds: a host has only a little longer to answer that it is reached.
WAIT = 2.0


class Upkeep:
    """Looks after hosts, each time one is reached."""

    def __init__(self, tools: Tools, *, alone: Callable[[str], AbstractContextManager[bool]]) -> None:
        """Take what keeps calls about one machine apart."""
        self._tools = tools
        self._alone = alone
        self._lock = threading.Lock()
        self._at_work: set[HostName] = set()
        self._looked_at: dict[HostName, float] = {}
        self._changed: dict[str, float] = {}  # domains that there was news of, and when

    def changed(self, uuid: str) -> None:
        """Take note that something has happened to a domain: its definition may have changed."""
        if self._tools.kept.kept:
            with self._lock:
                self._changed[uuid] = time.monotonic()

    def look_after(self, hypervisor: Hypervisor, host: Host) -> None:
        """Do what is to be done on a host, unless that is under way; what takes long goes on by itself.

        Whether the host is reached is not told by this.
        """
        with self._lock:
            if host.name in self._at_work:
                return
            self._at_work.add(host.name)
        name = f"forewarn-libvirt-upkeep-{host.name}"
        thread = threading.Thread(target=self._run, args=(hypervisor, host), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more threads
            log.info("%s is looked after later: %s", host.name, error)
            with self._lock:
                self._at_work.discard(host.name)
            return
        thread.join(WAIT)

    def _run(self, hypervisor: Hypervisor, host: Host) -> None:
        try:
            self._look_after(hypervisor, host)
        except (NoAnswer, Declined) as error:
            log.info("%s is looked after later: %s", host.name, error)
        except Exception:
            log.exception("%s could not be looked after", host.name)
        finally:
            with self._lock:
                self._at_work.discard(host.name)

    def _look_after(self, hypervisor: Hypervisor, host: Host) -> None:
        now = time.monotonic()
        looks_through = now - self._looked_at.get(host.name, -LOOK_EVERY) >= LOOK_EVERY
        if looks_through:
            self._read_notes(hypervisor, host)
        left_behind.clear_up(
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
