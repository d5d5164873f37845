"""Domain XML: whose a domain is, which disks it has, and what of it stays with its host.

A domain that was made in place of one on a host that could not be reached has a note of that host in its
metadata, which goes with it wherever it moves. So a domain of the same UUID without such a note is the one
that was left.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from xml.etree import ElementTree

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.sights import MARK_NAMESPACE, MARK_PREFIX, DomainMark, mark_as_xml, read_mark

# What its owner says of a machine: `<forewarn:machine xmlns:forewarn="urn:forewarn:machine:1">`.
MACHINE_NAMESPACE = "urn:forewarn:machine:1"
AGENT_CHANNEL = "org.qemu.guest_agent.0"

# Those who manage domains themselves, by the namespace of what they leave in metadata.
MANAGERS = {
    "http://openstack.org/xmlns/libvirt/nova/": "OpenStack's nova",
    "http://ovirt.org/vm/": "oVirt",
    "http://kubevirt.io": "KubeVirt",
}
# Kinds of disk sources that a host reaches over the network, wherever it is.
_OVER_THE_NETWORK = frozenset({"network", "nvme-of"})
# What every host calls itself.
_THE_HOST_ITSELF = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
LEFT_NAMESPACE = "urn:forewarn:left-behind:1"
LEFT_PREFIX = "forewarn-left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk, or another file that a domain cannot run without."""

    name: str  # as its domain calls it: vda
    path: str | None = None  # on its host
    pool: str | None = None  # of a disk that is a volume
    volume: str | None = None
    network: bool = False  # reached over the network, and the same wherever it is reached from
    served_by_host: str | None = None  # where its own host serves it: another host would find another there
    ephemeral: bool = False  # made anew where the machine comes to
    capacity: int | None = None  # of an ephemeral one, in bytes, if its owner says so
    format: str = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What the XML of a domain says that the driver goes by."""

    manager: str | None
    disks: tuple[Disk, ...]
    stays: tuple[str, ...]  # what it has that cannot leave its host
    has_agent: bool  # the guest agent is connected, as far as libvirt knows


def read(xml: str) -> Definition:
    """Read the XML of a domain, as libvirt gives it."""
    root = _parsed(xml)
    declared = root.iterfind(f"metadata/{{{MACHINE_NAMESPACE}}}machine/{{{MACHINE_NAMESPACE}}}ephemeral")
    ephemeral = {each.get("disk", ""): each.get("capacity", "") for each in declared}
    return Definition(
        manager=_manager(root),
        disks=tuple(_disks(root, ephemeral)),
        stays=tuple(_stays(root)),
        has_agent=any(_is_agent(channel) for channel in root.iterfind("devices/channel")),
    )


def with_mark(xml: str, mark: DomainMark) -> str:
    """Return the XML of a domain with another mark in it."""
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
        said = ephemeral.get(name, "")
        yield Disk(
            name=name,
            path=_path(source),
            pool=source.get("pool"),
            volume=source.get("volume"),
            network=_is_shared(disk.get("type"), source),
            served_by_host=_served_by_host(source),
            ephemeral=name in ephemeral,
            capacity=int(said) if said.isdecimal() else None,
            format="raw" if driver is None else driver.get("type", "raw"),
        )
        # What an image adds to is as needed as the image.
        for backing in disk.iter("backingStore"):
            below = backing.find("source")
            if below is not None:
                yield Disk(
                    name=f"{name}, which adds to",
                    path=_path(below),
                    network=_is_shared(backing.get("type"), below),
                    served_by_host=_served_by_host(below),
                )
    # What firmware a host has is its own, and found again by each; what a guest keeps in it is not.
    for tag in ("nvram", "kernel", "initrd", "dtb"):
        element = root.find(f"os/{tag}")
        if element is not None and element.text:
            yield Disk(name=tag, path=element.text.strip())


def _path(source: ElementTree.Element) -> str | None:
    return source.get("file") or source.get("dev") or source.get("dir")


def _is_shared(kind: str | None, source: ElementTree.Element) -> bool:
    return kind in _OVER_THE_NETWORK and _served_by_host(source) is None


def _served_by_host(source: ElementTree.Element) -> str | None:
    """Return where a host serves a disk itself: by a socket of its own, or at an address that is its own."""
    for host in source.iterfind("host"):
        name = host.get("name", "")
        if host.get("transport") == "unix":
            return host.get("socket", "a socket")
        if name.rstrip(".").lower() in _THE_HOST_ITSELF or _is_loopback(name):
            return name
    return None


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _stays(root: ElementTree.Element) -> Iterator[str]:
    if any(tpm.get("type") == "emulator" for tpm in root.iterfind("devices/tpm/backend")):
        yield "an emulated TPM"
    if root.find("devices/hostdev") is not None:
        yield "a device of its host"
    if root.find("devices/filesystem") is not None:
        yield "a directory of its host"


def _is_agent(channel: ElementTree.Element) -> bool:
    target = channel.find("target")
    return target is not None and target.get("name") == AGENT_CHANNEL and target.get("state") == "connected"


def left_on_as_xml(hosts: Iterable[HostName]) -> str:
    """Write the hosts as the element that libvirt keeps; libvirt adds the namespace."""
    root = ElementTree.Element("left-behind")
    for host in sorted(hosts):
        ElementTree.SubElement(root, "on", {"host": host})
    return ElementTree.tostring(root, encoding="unicode")


def read_left_on(xml: str) -> frozenset[HostName]:
    """Read the hosts of a note as libvirt gives it back; none from what is no note."""
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before
    except ElementTree.ParseError:
        return frozenset()
    return frozenset(HostName(each.get("host", "")) for each in root if each.get("host"))
