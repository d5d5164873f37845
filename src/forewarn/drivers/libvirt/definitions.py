"""Domain XML: the manager of a domain, its disks, the devices that cannot move, and forewarn's metadata.

A domain that was recovered from an unreachable host stores a note of that host in its metadata. The note
moves with the domain. So another domain with the same UUID and without the note is stale.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from xml.etree import ElementTree

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.domain_view import (
    MARK_NAMESPACE,
    MARK_PREFIX,
    DomainMark,
    mark_as_xml,
    read_mark,
)

# The owner's metadata of a machine: `<forewarn:machine xmlns:forewarn="urn:forewarn:machine:1">`.
MACHINE_NAMESPACE = "urn:forewarn:machine:1"
AGENT_CHANNEL = "org.qemu.guest_agent.0"

# Other managers of domains, by the namespace of their metadata.
MANAGERS = {
    "http://openstack.org/xmlns/libvirt/nova/": "OpenStack's nova",
    "http://ovirt.org/vm/": "oVirt",
    "http://kubevirt.io": "KubeVirt",
}
# Disk sources that every host reaches over the network.
_NETWORK_SOURCES = frozenset({"network", "nvme-of"})
_LOCALHOST = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
STALE_NAMESPACE = "urn:forewarn:left-behind:1"
STALE_PREFIX = "forewarn-left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk, or another file that a domain needs."""

    name: str  # such as vda
    path: str | None = None  # on the host
    pool: str | None = None  # of a volume
    volume: str | None = None
    network: bool = False  # the same network storage from every host
    served_by_host: str | None = None  # the local socket or address if the host itself serves the disk
    ephemeral: bool = False  # created empty on the target of a move
    capacity: int | None = None  # of an ephemeral disk, in bytes, if declared
    format: str = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The parts of a domain's XML that the driver uses."""

    manager: str | None
    disks: tuple[Disk, ...]
    immovable: tuple[str, ...]  # devices that cannot leave the host
    has_agent: bool  # the guest agent is connected


def read(xml: str) -> Definition:
    """Parse the XML of a domain."""
    root = _parsed(xml)
    declared = root.iterfind(f"metadata/{{{MACHINE_NAMESPACE}}}machine/{{{MACHINE_NAMESPACE}}}ephemeral")
    ephemeral = {each.get("disk", ""): each.get("capacity", "") for each in declared}
    return Definition(
        manager=_manager(root),
        disks=tuple(_disks(root, ephemeral)),
        immovable=tuple(_immovable(root)),
        has_agent=any(_is_agent(channel) for channel in root.iterfind("devices/channel")),
    )


def with_mark(xml: str, mark: DomainMark) -> str:
    """Return the XML of a domain with a new mark."""
    ElementTree.register_namespace(MARK_PREFIX, MARK_NAMESPACE)
    root = _parsed(xml)
    metadata = root.find("metadata")
    if metadata is None:
        metadata = ElementTree.SubElement(root, "metadata")
    for old in metadata.findall(f"{{{MARK_NAMESPACE}}}step"):
        metadata.remove(old)
    step = _parsed(mark_as_xml(mark))
    ElementTree.SubElement(metadata, f"{{{MARK_NAMESPACE}}}step", step.attrib)
    return ElementTree.tostring(root, encoding="unicode")


def mark_in(xml: str) -> DomainMark | None:
    """Return the mark in the XML of a domain."""
    step = _parsed(xml).find(f"metadata/{{{MARK_NAMESPACE}}}step")
    return None if step is None else read_mark(ElementTree.tostring(step, encoding="unicode"))


def _parsed(xml: str) -> ElementTree.Element:
    return ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before


def _manager(root: ElementTree.Element) -> str | None:
    for element in root.iterfind("metadata/*"):
        namespace = element.tag.removeprefix("{").partition("}")[0]
        for known, manager in MANAGERS.items():
            if namespace.startswith(known):
                return manager
    return None


def _disks(root: ElementTree.Element, ephemeral: Mapping[str, str]) -> Iterator[Disk]:
    for disk in root.iterfind("devices/disk"):
        source, target, driver = disk.find("source"), disk.find("target"), disk.find("driver")
        if source is None or target is None:
            continue  # a drive without a medium
        name = target.get("dev", "?")
        capacity = ephemeral.get(name, "")
        yield Disk(
            name=name,
            path=_path(source),
            pool=source.get("pool"),
            volume=source.get("volume"),
            network=_is_shared(disk.get("type"), source),
            served_by_host=_served_by_host(source),
            ephemeral=name in ephemeral,
            capacity=int(capacity) if capacity.isdecimal() else None,
            format="raw" if driver is None else driver.get("type", "raw"),
        )
        # A domain needs the backing files of its images too.
        for backing in disk.iter("backingStore"):
            below = backing.find("source")
            if below is not None:
                yield Disk(
                    name=f"{name}, backing file",
                    path=_path(below),
                    network=_is_shared(backing.get("type"), below),
                    served_by_host=_served_by_host(below),
                )
    # Each host has its own firmware, but the variables that a guest stores in NVRAM are the domain's.
    for tag in ("nvram", "kernel", "initrd", "dtb"):
        element = root.find(f"os/{tag}")
        if element is not None and element.text:
            yield Disk(name=tag, path=element.text.strip())


def _path(source: ElementTree.Element) -> str | None:
    return source.get("file") or source.get("dev") or source.get("dir")


def _is_shared(kind: str | None, source: ElementTree.Element) -> bool:
    return kind in _NETWORK_SOURCES and _served_by_host(source) is None


def _served_by_host(source: ElementTree.Element) -> str | None:
    """Return the local socket or loopback address at which the host itself serves a disk."""
    for host in source.iterfind("host"):
        name = host.get("name", "")
        if host.get("transport") == "unix":
            return host.get("socket", "a socket")
        if name.rstrip(".").lower() in _LOCALHOST or _is_loopback(name):
            return name
    return None


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _immovable(root: ElementTree.Element) -> Iterator[str]:
    if any(tpm.get("type") == "emulator" for tpm in root.iterfind("devices/tpm/backend")):
        yield "an emulated TPM"
    if root.find("devices/hostdev") is not None:
        yield "a device of its host"
    if root.find("devices/filesystem") is not None:
        yield "a directory of its host"


def _is_agent(channel: ElementTree.Element) -> bool:
    target = channel.find("target")
    return target is not None and target.get("name") == AGENT_CHANNEL and target.get("state") == "connected"


def stale_on_as_xml(hosts: Iterable[HostName]) -> str:
    """Write the note of stale domains as a metadata element; libvirt adds the namespace."""
    root = ElementTree.Element("left-behind")
    for host in sorted(hosts):
        ElementTree.SubElement(root, "on", {"host": host})
    return ElementTree.tostring(root, encoding="unicode")


def read_stale_on(xml: str) -> frozenset[HostName]:
    """Read the hosts of a note; return none if it is no note."""
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before
    except ElementTree.ParseError:
        return frozenset()
    return frozenset(HostName(each.get("host", "")) for each in root if each.get("host"))
