"""Marks in the metadata of domains, and the parts of the XML that the libvirt driver reads."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from forewarn.core.basic_types import HostName, OrderId, Work
from forewarn.drivers.libvirt import definitions
from forewarn.drivers.libvirt.definitions import Disk
from forewarn.drivers.libvirt.domain_view import AttemptEnd, DomainMark, mark_as_xml, read_mark
from forewarn.drivers.libvirt.library import boot_id

MARK = DomainMark(
    order=OrderId("0A"),
    machine="m",
    attempt=2,
    work=Work.REDEPLOY,
    target=HostName("kvm02"),
    begun=datetime(2026, 11, 16, 12, tzinfo=UTC),
)
FULL = replace(
    MARK,
    run=-1,
    boot="b",
    asked=MARK.begun,
    away=MARK.begun,
    forced=MARK.begun,
    started=MARK.begun,
    back='no "room" & <less>',
    ended=AttemptEnd.DONE,
    impact=0.25,
    why="é\n",
)
DOMAIN = """
<domain type='kvm'>
  <name>web-0</name>
  <metadata>
    <forewarn:machine xmlns:forewarn='urn:forewarn:machine:1'>
      <forewarn:ephemeral disk='vdb' capacity='1048576'/>
    </forewarn:machine>
    {metadata}
  </metadata>
  <os><type>hvm</type><kernel>/boot/k</kernel><nvram>/var/lib/n.fd</nvram></os>
  <devices>
    <disk type='network' device='disk'><source protocol='rbd' name='p/v'/><target dev='vda'/></disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/><source file='/srv/b.qcow2'/><target dev='vdb'/>
    </disk>
    <disk type='file' device='disk'>
      <source file='/srv/c.qcow2'/>
      <backingStore type='file'>
        <format type='raw'/><source file='/srv/base.raw'/><backingStore/>
      </backingStore>
      <target dev='vdc'/>
    </disk>
    <disk type='volume' device='disk'><source pool='p' volume='v'/><target dev='vdd'/></disk>
    <disk type='file' device='cdrom'><target dev='sda'/></disk>
    {devices}
  </devices>
</domain>
"""


def definition(*, metadata: str = "", devices: str = "") -> definitions.Definition:
    return definitions.read(DOMAIN.format(metadata=metadata, devices=devices))


@pytest.mark.parametrize("mark", [MARK, FULL])
def test_a_mark_survives_writing_and_reading(mark: DomainMark) -> None:
    assert read_mark(mark_as_xml(mark)) == mark


@pytest.mark.parametrize(
    "xml", ["", "<step/>", "<step order='O' machine='m' attempt='x' work='reboot' begun='?'/>"]
)
def test_xml_without_a_mark_is_none(xml: str) -> None:
    assert read_mark(xml) is None


def test_a_new_mark_replaces_the_old_one_in_a_definition() -> None:
    xml = DOMAIN.format(metadata="", devices="")
    once = definitions.with_mark(xml, MARK)
    again = definitions.with_mark(once, FULL)
    assert definitions.mark_in(xml) is None
    assert definitions.mark_in(once) == MARK
    assert definitions.mark_in(again) == FULL
    assert again.count("urn:forewarn:step:1") == 1
    assert definitions.read(again) == definitions.read(xml)


def test_every_file_that_a_machine_needs_is_a_disk() -> None:
    assert definition().disks == (
        Disk(name="vda", network=True),
        Disk(name="vdb", path="/srv/b.qcow2", ephemeral=True, capacity=1048576, format="qcow2"),
        Disk(name="vdc", path="/srv/c.qcow2"),
        Disk(name="vdc, backing file", path="/srv/base.raw"),
        Disk(name="vdd", pool="p", volume="v"),
        Disk(name="nvram", path="/var/lib/n.fd"),
        Disk(name="kernel", path="/boot/k"),
    )


@pytest.mark.parametrize(
    ("metadata", "manager"),
    [
        ("<n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/1.1'/>", "OpenStack's nova"),
        ("<o:vm xmlns:o='http://ovirt.org/vm/1.0'/>", "oVirt"),
        ("<k:x xmlns:k='http://kubevirt.io'/>", "KubeVirt"),
        ("<l:libosinfo xmlns:l='http://libosinfo.org/xmlns/libvirt/domain/1.0'/>", None),
    ],
)
def test_another_manager_is_detected_by_its_metadata(metadata: str, manager: str | None) -> None:
    assert definition(metadata=metadata).manager == manager


@pytest.mark.parametrize(
    ("devices", "immovable"),
    [
        ("", ()),
        ("<tpm><backend type='emulator'/></tpm>", ("an emulated TPM",)),
        ("<hostdev/><filesystem/>", ("a device of its host", "a directory of its host")),
    ],
)
def test_immovable_devices_are_named(devices: str, immovable: tuple[str, ...]) -> None:
    assert definition(devices=devices).immovable == immovable


@pytest.mark.parametrize(("state", "has_agent"), [("connected", True), ("disconnected", False)])
def test_an_agent_counts_when_it_is_connected(state: str, has_agent: bool) -> None:
    channel = f"<channel><target name='org.qemu.guest_agent.0' state='{state}'/></channel>"
    assert definition(devices=channel).has_agent is has_agent


def test_characters_that_xml_cannot_hold_are_replaced_in_a_mark() -> None:
    read = read_mark(mark_as_xml(replace(MARK, why="a\x00b\x1b")))
    assert read is not None
    assert read.why == "a b "


@pytest.mark.parametrize("said", [b"", b"\x00", b"boot", b"x" * 1_000_000, "é".encode()])
def test_an_invalid_boot_id_from_a_guest_is_refused(said: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        boot_id(said)


def test_a_boot_id_is_linuxs_uuid() -> None:
    assert boot_id(b"0d1c7e2e-7f55-4a4d-9f0c-2a1f6f0f6a11\n") == "0d1c7e2e-7f55-4a4d-9f0c-2a1f6f0f6a11"
