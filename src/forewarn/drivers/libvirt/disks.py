"""Which disks of a machine two hosts see, and those that are made anew where it comes to."""

import logging
from collections.abc import Iterable, Sequence
from os.path import normpath

from forewarn.drivers.libvirt.definitions import Definition, Disk
from forewarn.drivers.libvirt.hypervisor import Hypervisor, Pool, Volume
from forewarn.drivers.libvirt.library import Declined, NoLibvirtAnswer

log = logging.getLogger(__name__)

# Pools that are mounted, or reached, over the network: the same source is the same storage on every host.
_SHARED_POOLS = frozenset({"netfs", "rbd", "iscsi", "iscsi-direct", "gluster", "sheepdog"})
# Files that hosts have as they have programs: whether they do is seen when the machine is started.
_OF_THE_HOST = frozenset({"kernel", "initrd", "dtb"})


def in_the_way(
    definition: Definition, here: Hypervisor, there: Hypervisor, *, shared: Sequence[str]
) -> str | None:
    """Return why a machine cannot go from one host to the other with all its disks."""
    for what in definition.stays:
        return f"it has {what}, which cannot leave {here.host}"
    for disk in definition.disks:
        why = _in_the_way(disk, here, there, shared=shared)
        if why is not None:
            return why
    return None


def _in_the_way(disk: Disk, here: Hypervisor, there: Hypervisor, *, shared: Sequence[str]) -> str | None:
    if is_shared(disk, here, there, shared=shared):
        return None
    if not disk.ephemeral or disk.path is None:
        where = disk.path or disk.volume or disk.served_by_host
        return (
            f"disk {disk.name} ({where}) is not seen by both {here.host} and {there.host}: "
            "put it on shared storage (see shared-paths), or declare it ephemeral"
        )
    if here.volume(disk.path) is None:
        return f"ephemeral disk {disk.name} ({disk.path}) is in no storage pool of {here.host}: define one"
    if there.pool_of(path=disk.path) is None:
        return f"{there.host} has no storage pool for ephemeral disk {disk.name} ({disk.path}): define one"
    if there.volume(disk.path) is not None:
        return f"{there.host} has {disk.path} already, where ephemeral disk {disk.name} is to be: remove it"
    return None


def is_shared(disk: Disk, here: Hypervisor, there: Hypervisor, *, shared: Sequence[str]) -> bool:
    """Return whether two hosts see the same disk; that its path is there on both says nothing of that."""
    if disk.network or disk.name in _OF_THE_HOST:
        return True
    if disk.path is not None and any(_is_below(disk.path, each) for each in shared):
        return True
    one = here.pool_of(name=disk.pool, path=disk.path)
    return _is_network_pool(one) and one == there.pool_of(name=disk.pool, path=disk.path)


def made_anew(
    definition: Definition, here: Hypervisor, there: Hypervisor, *, shared: Sequence[str]
) -> list[Disk]:
    """Return the disks that are made anew when the machine goes from one host to the other."""
    ephemeral = (disk for disk in definition.disks if disk.ephemeral and disk.path is not None)
    return [disk for disk in ephemeral if not is_shared(disk, here, there, shared=shared)]


def make(disks: Iterable[Disk], *, like: Hypervisor, on: Hypervisor) -> None:
    """Make disks on a host, empty, as large as they are on another; Declined if there is no room."""
    for disk in disks:
        if disk.path is not None:
            model = like.volume(disk.path)
            if model is None:
                raise Declined(f"{like.host} does not tell how large ephemeral disk {disk.name} is")
            on.make(model)


def make_by_size(disks: Iterable[Disk], *, on: Hypervisor) -> None:
    """Make disks whose host cannot be asked, as large as their definition says."""
    for disk in disks:
        if disk.path is None or disk.capacity is None:
            raise Declined(
                f"how large ephemeral disk {disk.name} is its lost host alone knows: "
                f'declare it (<ephemeral disk="{disk.name}" capacity="…"/>, in bytes)'
            )
        on.make(Volume(path=disk.path, capacity=disk.capacity, format=disk.format))


def delete(disks: Iterable[Disk], *, on: Hypervisor) -> None:
    """Delete what a machine leaves behind on a host that it has left; what cannot be deleted stays."""
    for disk in disks:
        try:
            if disk.path is not None:
                on.delete(disk.path)
        except (Declined, NoLibvirtAnswer) as error:
            log.warning("%s keeps ephemeral disk %s: %s", on.host, disk.path, error)


def _is_below(path: str, directory: str) -> bool:
    return normpath(path).startswith(normpath(directory).rstrip("/") + "/")


def _is_network_pool(pool: Pool | None) -> bool:
    return pool is not None and pool.type in _SHARED_POOLS
