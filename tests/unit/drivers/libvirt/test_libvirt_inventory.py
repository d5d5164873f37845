"""The parts of a domain's XML that an import reads."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from forewarn.core.basic_types import HostName, Mobility
from forewarn.core.model.host import Host, HostResource
from forewarn.drivers.libvirt import inventory
from forewarn.drivers.libvirt.hypervisor import Hypervisor

XML = """
<domain type='kvm'>
  <name>web-0</name>
  <metadata>
    <forewarn:machine xmlns:forewarn="urn:forewarn:machine:1" {attributes}>{inside}</forewarn:machine>
  </metadata>
  <devices>
    <interface type='bridge'><mac address='52:54:00:AB:00:01'/></interface>
    <interface type='{kind}'><mac address='52:54:00:ab:00:02'/></interface>
  </devices>
</domain>
"""


def said(attributes: str = "", inside: str = "", kind: str = "bridge") -> inventory.DomainDeclaration:
    return inventory.read(XML.format(attributes=attributes, inside=inside, kind=kind))


def test_a_domain_is_read_with_its_interfaces() -> None:
    found = said()
    assert (found.name, found.macs) == ("web-0", ("52:54:00:ab:00:01", "52:54:00:ab:00:02"))
    assert (found.fields, found.faults) == ({}, ())


def test_leases_are_read_only_if_libvirt_manages_the_network() -> None:
    assert (said().has_leases, said(kind="network").has_leases) == (False, True)


def test_the_owners_metadata_is_imported() -> None:
    found = said(
        'group="web" update-domain="2" mobility="live" project="shop" network="blue"',
        '<forewarn:tag name="role" value="front"/><forewarn:ephemeral disk="vda" capacity="1"/>',
    )
    assert found.faults == ()
    assert found.fields == {
        "group": "web",
        "update_domain": 2,
        "mobility": Mobility.LIVE,
        "project": "shop",
        "network": "blue",
        "tags": {"role": "front"},
    }


def test_invalid_metadata_is_reported_and_skipped() -> None:
    found = said('update-domain="two" mobility="fast" group=""')
    assert found.fields == {}
    assert found.faults == (
        'its metadata has update-domain="two": expected a whole number',
        'its metadata has mobility="fast": expected live, live-only, cold or none',
    )


def test_unknown_metadata_is_reported() -> None:
    found = said(
        'group="web" update_domain="1" zone="a" xmlns:other="urn:other" other:mark="x"',
        '<forewarn:tag value="nameless"/><forewarn:disk/><other:tag xmlns:other="urn:other"/>',
    )
    assert found.fields == {"group": "web"}
    assert found.faults == (
        "its metadata has update_domain and zone, which forewarn does not know: expected some of group, "
        "mobility, network, project, update-domain",
        "its metadata has disk, which forewarn does not know: expected some of ephemeral, tag",
        "its metadata has a tag without a name",
    )


def test_a_long_list_of_unknown_metadata_is_shortened() -> None:
    long, many = "x" * 300, " ".join(f'a{n}="1"' for n in range(9))
    (fault,) = said(f'{long}="1" {many}').faults
    assert fault.startswith(f"its metadata has {'x' * 39}…, a0, a1, a2, a3 and 5 more, which")


def test_a_domain_without_metadata_declares_nothing() -> None:
    found = inventory.read("<domain><name>bare</name></domain>")
    assert (found.name, found.macs, found.fields) == ("bare", (), {})


def test_a_domain_has_its_memory_and_vcpus_as_resources() -> None:
    sizes = "<memory unit='KiB'>1572864</memory><vcpu placement='static' current='1'>4</vcpu>"
    found = inventory.read(f"<domain><name>sized</name>{sizes}</domain>")
    assert found.fields == {"resources": {"memory": 1.5, "vcpus": 4.0}}


class Listed:
    """The connection to a host that has no domains."""

    def getInfo(self) -> list[object]:  # noqa: N802 - libvirt's name
        return ["x86_64", 64_000, 32, 2400, 1, 1, 16, 2]

    def listAllDomains(self) -> list[object]:  # noqa: N802 - libvirt's name
        return []


def test_a_host_has_its_memory_and_processors_as_resources() -> None:
    name = HostName("kvm01")
    library: Any = SimpleNamespace(libvirtError=RuntimeError)
    (host,) = inventory.list_host(Hypervisor(library, Listed(), host=name), Host(name=name)).hosts
    assert host.resources == {"memory": HostResource(amount=62.5), "vcpus": HostResource(amount=32, ratio=16)}


def test_an_invalid_address_from_a_guest_is_ignored() -> None:
    said = ["10.0.0.1", "fd00::1", "127.0.0.1", "fe80::1", "", "10.0.0.1/24", "not an address"]
    assert list(filter(inventory.is_routed, said)) == ["10.0.0.1", "fd00::1"]


BRIDGED, LEASED = "52:54:00:ab:00:01", "52:54:00:ab:00:02"


class Addressed:
    """A domain with leases and a guest agent that may lie."""

    def __init__(self, leases: Mapping[str, tuple[str, ...]], agent: Mapping[str, tuple[str, ...]]) -> None:
        self._told = {False: leases, True: agent}

    def addresses(self, *, by_agent: bool) -> Mapping[str, tuple[str, ...]]:
        return self._told[by_agent]


@pytest.mark.parametrize(
    ("leases", "agent", "found"),
    [
        ({LEASED: ("10.0.0.2",)}, {LEASED: ("10.0.0.9",)}, ("10.0.0.2",)),  # the guest lies
        ({LEASED: ("10.0.0.2",)}, {BRIDGED: ("10.1.0.1",)}, ("10.1.0.1", "10.0.0.2")),
        ({}, {LEASED: ("10.0.0.9",)}, ("10.0.0.9",)),  # it has just moved here
        ({LEASED: ("fe80::1",)}, {LEASED: ("10.0.0.9", "127.0.0.1")}, ("10.0.0.9",)),
    ],
)
def test_leases_have_priority_over_the_guest_agent(
    leases: Mapping[str, tuple[str, ...]], agent: Mapping[str, tuple[str, ...]], found: tuple[str, ...]
) -> None:
    domain: Any = Addressed(leases, agent)
    assert inventory.addresses(domain, said(kind="network"), by_agent=True) == found


def test_without_leases_and_agent_no_address_is_known() -> None:
    domain: Any = Addressed({LEASED: ("10.0.0.2",)}, {LEASED: ("10.0.0.9",)})
    assert inventory.addresses(domain, said(), by_agent=False) == ()
