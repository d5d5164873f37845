"""What the libvirt of a host has: its domains, as an import takes them.

A domain's UUID is what it is known by. Its owner may say more of it in its metadata, in forewarn's namespace:

    <forewarn:machine xmlns:forewarn="urn:forewarn:machine:1" group="web" update-domain="1" mobility="live">
      <forewarn:tag name="role" value="front"/>
    </forewarn:machine>

Addresses are those that libvirt has leased, where it manages the network: a guest has no say in them.
Elsewhere there are no leases, nor are there any on the host that a machine has just come to: there the guest
agent's word is taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from xml.etree import ElementTree

from forewarn.core.basic_types import GroupName, MachineId, MachineName, Mobility, ProjectName
from forewarn.core.errors import Unavailable
from forewarn.core.model.found_fleet import FoundFleet, FoundHost, FoundMachine, unknown_metadata
from forewarn.core.model.host import Host, HostResource
from forewarn.drivers.libvirt import definitions
from forewarn.drivers.libvirt.definitions import MACHINE_NAMESPACE
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import Declined
from forewarn.drivers.libvirt.sights import DomainState

_IN_NAMESPACE = f"{{{MACHINE_NAMESPACE}}}"
_ATTRIBUTES = ("group", "mobility", "network", "project", "update-domain")
_ELEMENTS = ("ephemeral", "tag")
# Hosts run more vCPUs than they have processors: nova's default was as many for years.
VCPUS_A_PROCESSOR = 16.0
KIB_IN_GIB, MIB_IN_GIB = 2**20, 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the XML of a domain says that an import takes."""

    name: str
    macs: tuple[str, ...]
    has_leases: bool  # libvirt itself gives it its addresses
    fields: dict[str, Any]  # of its owner's metadata
    faults: tuple[str, ...]  # what of that cannot be understood


def list_host(hypervisor: Hypervisor, host: Host) -> FoundFleet:
    """Return the domains of a host, also those that are off."""
    listed = [found for domain in hypervisor.domains() if (found := _found(domain, host)) is not None]
    return FoundFleet(
        hosts=(FoundHost(name=host.name, uri=host.uri, resources=_capacity(hypervisor)),),
        machines=tuple(machine for machine, _ in listed),
        notes=tuple(f"machine {machine.name}: {fault}" for machine, faults in listed for fault in faults),
    )


def _capacity(hypervisor: Hypervisor) -> dict[str, HostResource]:
    memory, processors = hypervisor.capacity()
    return {
        "memory": HostResource(amount=round(memory / MIB_IN_GIB, 3)),
        "vcpus": HostResource(amount=float(processors), ratio=VCPUS_A_PROCESSOR),
    }


def _found(domain: Domain, host: Host) -> tuple[FoundMachine, tuple[str, ...]] | None:
    try:
        seen, xml = domain.seen(), domain.xml(inactive=False)
    except Declined as error:
        if domain.is_known():
            raise Unavailable(f"{host.name} does not tell of domain {domain.uuid}: {error}") from error
        return None  # it has gone meanwhile
    said, known = read(xml), definitions.read(xml)
    running = seen.state is not DomainState.OFF
    machine = FoundMachine(
        vm_id=MachineId(domain.uuid),
        name=MachineName(said.name),
        host=host.name,
        running=running,
        moving=seen.migrating or seen.job is not None,
        macs=said.macs,
        addresses=addresses(domain, said, by_agent=known.has_agent) if running else (),
        manager=known.manager,
        **said.fields,
    )
    return machine, said.faults


def addresses(domain: Domain, said: Said, *, by_agent: bool) -> tuple[str, ...]:
    """Return where a machine's requests may come from, in the order of its interfaces."""
    leased = domain.addresses(by_agent=False) if said.has_leases else {}
    unknown = [mac for mac in said.macs if not _routed(leased.get(mac, ()))]
    told = domain.addresses(by_agent=True) if by_agent and unknown else {}
    return tuple(
        address for mac in said.macs for address in _routed(leased.get(mac, ())) or _routed(told.get(mac, ()))
    )


def _routed(addresses: Iterable[str]) -> list[str]:
    return [each for each in addresses if is_routed(each)]


def is_routed(address: str) -> bool:
    """Return whether a machine may be called by an address from elsewhere."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False  # the agent is the guest's, and may say anything
    return not (parsed.is_loopback or parsed.is_link_local)


def read(xml: str) -> Said:
    """Read the XML of a domain."""
    root = ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before
    macs = [each.get("address", "").lower() for each in root.iterfind("devices/interface/mac")]
    declared = root.find(f"metadata/{_IN_NAMESPACE}machine")
    faults: list[str] = []
    given = {} if declared is None else dict(_declared(declared, faults))
    if sizes := dict(_sizes(root)):
        given["resources"] = sizes
    return Said(
        name=root.findtext("name", ""),
        macs=tuple(filter(None, macs)),
        has_leases=any(each.get("type") == "network" for each in root.iterfind("devices/interface")),
        fields=given,
        faults=tuple(faults),
    )


def _sizes(root: ElementTree.Element) -> Iterator[tuple[str, float]]:
    """Yield the most memory that a domain may take, in GiB, and its vCPUs; libvirt writes KiB."""
    memory, vcpus = root.findtext("memory"), root.findtext("vcpu")
    if memory is not None:
        yield "memory", round(int(memory) / KIB_IN_GIB, 3)
    if vcpus is not None:
        yield "vcpus", float(vcpus)


def _declared(machine: ElementTree.Element, faults: list[str]) -> Iterator[tuple[str, Any]]:
    for name, kind in (("group", GroupName), ("project", ProjectName), ("network", str)):
        if machine.get(name):
            yield name, kind(machine.get(name, ""))
    domain, mobility = machine.get("update-domain"), machine.get("mobility")
    if domain is not None:
        if domain.isdecimal():
            yield "update_domain", int(domain)
        else:
            faults.append(f'its metadata has update-domain="{domain}": expected a whole number')
    if mobility is not None:
        if mobility in tuple(Mobility):
            yield "mobility", Mobility(mobility)
        else:
            faults.append(f'its metadata has mobility="{mobility}": expected live, live-only, cold or none')
    if tags := dict(_tags(machine)):
        yield "tags", tags
    faults += _unknown(machine)


def _tags(machine: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for each in machine.iterfind(f"{_IN_NAMESPACE}tag"):
        if each.get("name"):
            yield each.get("name", ""), each.get("value", "")


def _unknown(machine: ElementTree.Element) -> Iterator[str]:
    """Say what forewarn does not know; other namespaces are for others."""
    attributes = (name for name in machine.attrib if name[0] != "{")
    yield from unknown_metadata(attributes, known=_ATTRIBUTES)
    inside = (each.tag.removeprefix(_IN_NAMESPACE) for each in machine)
    yield from unknown_metadata((tag for tag in inside if tag[0] != "{"), known=_ELEMENTS)
    if not all(each.get("name") for each in machine.iterfind(f"{_IN_NAMESPACE}tag")):
        yield "its metadata has a tag without a name"
