"""What machines that were recovered have left on their failed hosts: cleared away once such a host is back.

A host that cannot be reached keeps the domains of its machines, and may start them by itself when it comes
back. The domain that was made elsewhere notes where that may be (`left_notes.py`). Whenever a host is
reached, what was left on it is powered off and undefined, but never while it might be the machine's only one.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from forewarn.core.model.host import Host
from forewarn.core.words import HostName
from forewarn.drivers.libvirt import disks
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import Declined, NoAnswer
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.sights import DomainState, Seen

log = logging.getLogger(__name__)


class LeftBehind:
    """Which domains have been left on which hosts, as the domains say that were made instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instead: dict[str, Host] = {}  # the host that has the domain with the note, by its UUID
        self._left_on: dict[str, frozenset[HostName]] = {}

    def note(self, uuid: str, left_on: frozenset[HostName], *, instead: Host) -> None:
        """Take note of what a domain says."""
        with self._lock:
            if left_on:
                self._instead[uuid], self._left_on[uuid] = instead, left_on
            elif uuid in self._instead and self._instead[uuid].name == instead.name:
                del self._instead[uuid], self._left_on[uuid]

    def of(self, host: HostName) -> dict[str, Host]:
        """Return the UUIDs of domains that may be left on a host, and where the one that counts is."""
        with self._lock:
            return {uuid: self._instead[uuid] for uuid, hosts in self._left_on.items() if host in hosts}


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
            except (NoAnswer, Declined) as error:
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
