"""List the domains of a host for `forewarn fleet import`.

The UUID identifies a domain. The owner may declare more in the domain's metadata:

    <forewarn:machine xmlns:forewarn="urn:forewarn:machine:1" group="web" update-domain="1" mobility="live">
      <forewarn:tag name="role" value="front"/>
    </forewarn:machine>

If libvirt manages the network, addresses come from its DHCP leases, which the guest cannot forge. Other
networks have no leases, and neither has a host to which a machine has just moved. Then addresses come from
the guest agent.
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
from forewarn.drivers.libvirt.domain_view import DomainState
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import LibvirtRefused

_IN_NAMESPACE = f"{{{MACHINE_NAMESPACE}}}"
_ATTRIBUTES = ("group", "mobility", "network", "project", "update-domain")
_ELEMENTS = ("ephemeral", "tag")
# Hosts run more vCPUs than they have processors. This was nova's default for years.
VCPUS_PER_PROCESSOR = 16.0
KIB_IN_GIB, MIB_IN_GIB = 2**20, 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainDeclaration:
    """The parts of a domain's XML that an import uses."""

    name: str
    macs: tuple[str, ...]
    has_leases: bool  # libvirt assigns the addresses
    fields: dict[str, Any]  # from the owner's metadata
    faults: tuple[str, ...]  # errors in that metadata


def list_host(hypervisor: Hypervisor, host: Host) -> FoundFleet:
    """Return the domains of a host, including those that are off."""
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
        "vcpus": HostResource(amount=float(processors), ratio=VCPUS_PER_PROCESSOR),
    }


def _found(domain: Domain, host: Host) -> tuple[FoundMachine, tuple[str, ...]] | None:
    try:
        view, xml = domain.view(), domain.xml(inactive=False)
    except LibvirtRefused as error:
        if domain.exists():
            raise Unavailable(f"{host.name} does not describe domain {domain.uuid}: {error}") from error
        return None
    declaration, definition = read(xml), definitions.read(xml)
    running = view.state is not DomainState.OFF
    machine = FoundMachine(
        vm_id=MachineId(domain.uuid),
        name=MachineName(declaration.name),
        host=host.name,
        running=running,
        moving=view.migrating or view.job is not None,
        macs=declaration.macs,
        addresses=addresses(domain, declaration, by_agent=definition.has_agent) if running else (),
        manager=definition.manager,
        **declaration.fields,
    )
    return machine, declaration.faults


def addresses(domain: Domain, declaration: DomainDeclaration, *, by_agent: bool) -> tuple[str, ...]:
    """Return the source addresses of a machine, in the order of its interfaces."""
    leases = domain.addresses(by_agent=False) if declaration.has_leases else {}
    leased = {mac: _routed(leases.get(mac, ())) for mac in declaration.macs}
    reported = domain.addresses(by_agent=True) if by_agent and not all(leased.values()) else {}
    return tuple(address for mac in leased for address in leased[mac] or _routed(reported.get(mac, ())))


def _routed(addresses: Iterable[str]) -> list[str]:
    return [each for each in addresses if is_routed(each)]


def is_routed(address: str) -> bool:
    """Return whether an address is valid and neither loopback nor link-local."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False  # the guest controls its agent
    return not (parsed.is_loopback or parsed.is_link_local)


def read(xml: str) -> DomainDeclaration:
    """Parse the XML of a domain."""
    root = ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before
    macs = [each.get("address", "").lower() for each in root.iterfind("devices/interface/mac")]
    declared = root.find(f"metadata/{_IN_NAMESPACE}machine")
    faults: list[str] = []
    fields = {} if declared is None else dict(_declared(declared, faults))
    if sizes := dict(_sizes(root)):
        fields["resources"] = sizes
    return DomainDeclaration(
        name=root.findtext("name", ""),
        macs=tuple(filter(None, macs)),
        has_leases=any(each.get("type") == "network" for each in root.iterfind("devices/interface")),
        fields=fields,
        faults=tuple(faults),
    )


def _sizes(root: ElementTree.Element) -> Iterator[tuple[str, float]]:
    """Yield the maximum memory in GiB, which libvirt writes in KiB, and the number of vCPUs."""
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
    if domain is not None and domain.isdecimal():
        yield "update_domain", int(domain)
    elif domain is not None:
        faults.append(f'its metadata has update-domain="{domain}": expected a whole number')
    if mobility in tuple(Mobility):
        yield "mobility", Mobility(mobility)
    elif mobility is not None:
        faults.append(f'its metadata has mobility="{mobility}": expected live, live-only, cold or none')
    tags = {each.get("name", ""): each.get("value", "") for each in machine.iterfind(f"{_IN_NAMESPACE}tag")}
    if named := {name: value for name, value in tags.items() if name}:
        yield "tags", named
    faults += _unknown(machine)


def _unknown(machine: ElementTree.Element) -> Iterator[str]:
    # Elements and attributes of other namespaces belong to other programs.
    attributes = (name for name in machine.attrib if name[0] != "{")
    yield from unknown_metadata(attributes, known=_ATTRIBUTES)
    elements = (each.tag.removeprefix(_IN_NAMESPACE) for each in machine)
    yield from unknown_metadata((tag for tag in elements if tag[0] != "{"), known=_ELEMENTS)
    if not all(each.get("name") for each in machine.iterfind(f"{_IN_NAMESPACE}tag")):
        yield "its metadata has a tag without a name"
