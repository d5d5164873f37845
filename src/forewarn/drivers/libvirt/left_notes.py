"""Notes of what a machine has left on a host that could not be reached when it was recovered elsewhere.

Such a note is in the metadata of the domain that was made instead, and goes with it wherever it moves. So a
domain of the same UUID that has no such note is the one that was left.
"""

from collections.abc import Iterable
from xml.etree import ElementTree

from forewarn.core.words import HostName

NAMESPACE = "urn:forewarn:left-behind:1"
PREFIX = "forewarn-left"


def as_xml(hosts: Iterable[HostName]) -> str:
    """Write the hosts as the element that libvirt keeps; libvirt adds the namespace."""
    root = ElementTree.Element("left-behind")
    for host in sorted(hosts):
        ElementTree.SubElement(root, "on", {"host": host})
    return ElementTree.tostring(root, encoding="unicode")


def read(xml: str) -> frozenset[HostName]:
    """Read the hosts of a note as libvirt gives it back; none from what is no note."""
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - libvirt has parsed it before
    except ElementTree.ParseError:
        return frozenset()
    return frozenset(HostName(each.get("host", "")) for each in root if each.get("host"))
