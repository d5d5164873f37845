"""What the driver refuses before it begins: each a line that names the thing and says what to do."""

from forewarn.core.model.machine import Machine
from forewarn.core.words import Work
from forewarn.drivers.libvirt import disks
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.places import Places
from forewarn.drivers.libvirt.sights import Sight

_TRANSIENT = "its domain is transient, and would be gone once it is off: define it (virsh define)"


def find(places: Places, sight: Sight, *, options: LibvirtOptions) -> str | None:
    """Return why a step is not begun; None if it is."""
    domain = places.first.found
    if domain is None:
        # A machine of a lost host is defined where it comes to.
        return None if places.task.work is Work.RECOVER else missing(places.machine, places.first.hypervisor)
    if (why := managed(domain, places.machine)) is not None:
        return why
    if places.begins_there:
        return None
    if places.task.work is Work.REDEPLOY and not places.moves:
        return "no other host was chosen for it"
    return _of_move(places, domain, sight, options) if places.moves else _of_guest(places, domain, sight)


def missing(machine: Machine, host: Hypervisor) -> str:
    """Say that a host does not have a machine; a domain of its name may be meant."""
    said = f"{host.host} has no domain with the UUID {machine.id} of {machine.name}"
    other = host.uuid_of(machine.name)
    if other is not None:
        return f'{said}; its domain {machine.name} has {other}: declare vm-id = "{other}" for the machine'
    return f"{said}: declare where it is, or have forewarn find it (forewarn fleet import --from libvirt)"


def managed(domain: Domain, machine: Machine) -> str | None:
    """Say that a domain has another manager, whose work it would be."""
    manager = domain.definition().manager
    if manager is None:
        return None
    return f"{machine.name} is managed by {manager}: have that do it, by its own driver or its own means"


def _of_guest(places: Places, domain: Domain, sight: Sight) -> str | None:
    """Return why something cannot be done to a domain where it is."""
    here, work = sight.here, places.task.work
    if here is None or here.persistent or work in (Work.FREEZE, Work.TERMINATE):
        return None
    return None if work is Work.REBOOT and domain.boot() else _TRANSIENT


def _of_move(places: Places, domain: Domain, sight: Sight, options: LibvirtOptions) -> str | None:
    """Return why a machine cannot go from one host to another."""
    here, there = places.here.hypervisor, places.there.hypervisor
    if sight.there is not None:
        return f"{there.host} has a domain with its UUID already: undefine that there (virsh undefine)"
    if sight.here is not None and not sight.here.persistent:
        return _TRANSIENT
    live = places.task.work is Work.FREEZE
    if live and sight.here is not None and not sight.here.active:
        return f"it is off on {here.host}, where it is declared to run: start it, or have it evicted"
    if not live and domain.snapshots():
        return "it has snapshots, which would be lost: delete them (virsh snapshot-delete)"
    if not live and domain.has_saved_memory():
        return (
            "its memory is saved, which would be lost: start it, or give that up (virsh managedsave-remove)"
        )
    return disks.in_the_way(domain.definition(), here, there, shared=options.shared_paths)
