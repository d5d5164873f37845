"""Which disks of a machine two hosts share, and which the driver creates on the target of a move."""

import logging
from collections.abc import Iterable, Sequence
from os.path import normpath

from forewarn.drivers.libvirt.definitions import Definition, Disk
from forewarn.drivers.libvirt.hypervisor import Hypervisor, Volume
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer

log = logging.getLogger(__name__)

# Network pools: the same source is the same storage on every host.
_SHARED_POOLS = frozenset({"netfs", "rbd", "iscsi", "iscsi-direct", "gluster", "sheepdog"})
# Files that each host should have; the start of the machine fails without them.
_HOST_FILES = frozenset({"kernel", "initrd", "dtb"})


def move_obstacle(
    definition: Definition, source: Hypervisor, target: Hypervisor, *, shared: Sequence[str]
) -> str | None:
    """Return why a machine cannot move between two hosts with its devices and disks; None if it can."""
    if definition.immovable:
        return f"it has {definition.immovable[0]}, which cannot leave {source.host}"
    obstacles = (_disk_obstacle(disk, source, target, shared=shared) for disk in definition.disks)
    return next((each for each in obstacles if each is not None), None)


def _disk_obstacle(
    disk: Disk, source: Hypervisor, target: Hypervisor, *, shared: Sequence[str]
) -> str | None:
    if is_shared(disk, source, target, shared=shared):
        return None
    if not disk.ephemeral or disk.path is None:
        where = disk.path or disk.volume or disk.served_by_host
        return (
            f"disk {disk.name} ({where}) is not shared by {source.host} and {target.host}: "
            "put it on shared storage (see shared-paths), or declare it ephemeral"
        )
    if source.volume(disk.path) is None:
        return f"ephemeral disk {disk.name} ({disk.path}) is in no storage pool of {source.host}: define one"
    if target.pool_of(path=disk.path) is None:
        return f"{target.host} has no storage pool for ephemeral disk {disk.name} ({disk.path}): define one"
    if target.volume(disk.path) is not None:
        return f"{target.host} already has {disk.path}, the path of ephemeral disk {disk.name}: remove it"
    return None


def is_shared(disk: Disk, source: Hypervisor, target: Hypervisor, *, shared: Sequence[str]) -> bool:
    """Return whether two hosts share a disk; equal paths alone do not prove it."""
    if disk.network or disk.name in _HOST_FILES:
        return True
    if disk.path is not None and any(_is_below(disk.path, each) for each in shared):
        return True
    pool = source.pool_of(name=disk.pool, path=disk.path)
    if pool is None or pool.type not in _SHARED_POOLS:
        return False
    return pool == target.pool_of(name=disk.pool, path=disk.path)


def recreated(
    definition: Definition, source: Hypervisor, target: Hypervisor, *, shared: Sequence[str]
) -> list[Disk]:
    """Return the ephemeral disks that a move between two hosts creates again."""
    ephemeral = (disk for disk in definition.disks if disk.ephemeral and disk.path is not None)
    return [disk for disk in ephemeral if not is_shared(disk, source, target, shared=shared)]


def create(disks: Iterable[Disk], *, original: Hypervisor, on: Hypervisor) -> None:
    """Create empty disks with the size of the originals on another host."""
    for disk in disks:
        if disk.path is not None:
            volume = original.volume(disk.path)
            if volume is None:
                raise LibvirtRefused(
                    f"{original.host} does not report the size of ephemeral disk {disk.name}"
                )
            on.create(volume)


def create_from_definition(disks: Iterable[Disk], *, on: Hypervisor) -> None:
    """Create empty disks with the declared size, because their host is lost."""
    for disk in disks:
        if disk.path is None or disk.capacity is None:
            raise LibvirtRefused(
                f"only the lost host knows the size of ephemeral disk {disk.name}: "
                f'declare it (<ephemeral disk="{disk.name}" capacity="…"/>, in bytes)'
            )
        on.create(Volume(path=disk.path, capacity=disk.capacity, format=disk.format))


def delete(disks: Iterable[Disk], *, on: Hypervisor) -> None:
    """Delete the disks of a machine that has left a host; log those that cannot be deleted."""
    for disk in disks:
        try:
            if disk.path is not None:
                on.delete(disk.path)
        except (LibvirtRefused, NoLibvirtAnswer) as error:
            log.warning("cannot delete ephemeral disk %s on %s: %s", disk.path, on.host, error)


def _is_below(path: str, directory: str) -> bool:
    return normpath(path).startswith(normpath(directory).rstrip("/") + "/")
