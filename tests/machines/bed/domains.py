"""Guests as libvirt domains: emulated machines of 128 MiB that boot the bed's kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from tests.machines.bed.console import Console
from tests.machines.bed.hosts import BRIDGE

# Debian's kernel logs a lot; the other options avoid slow emulation.
_KERNEL_LINE = (
    "console=ttyS0 quiet loglevel=3 panic=1 reboot=t,f nokaslr mitigations=off no_timer_check "
    "cryptomgr.notests random.trust_cpu=on audit=0 tsc=unstable"
)
# The guest's memory is this many KiB less than whole MiB. qemu before 9.0 loses some writes of an emulated
# machine during a migration: it searches for dirty pages in groups of 64 and forgets later writes to a group
# ("physmem: Fix migration dirty bitmap coherency with TCG memory access"). On its target, such a machine runs
# with old pages and soon hangs. qemu checks memory that is no multiple of 64 pages page by page, which is
# correct. By default, libvirt gives machines whole MiB.
_ODD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk of a guest, in a file or on the network."""

    kind: str
    """libvirt's type: `file` or `network`."""
    source: str
    """The source element of its definition."""
    path: Path
    """Its file, as the host sees it that has it."""
    format: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guest:
    """A machine of a bed, on any host."""

    name: str
    vm_id: str
    number: int
    """The last part of its address and of its MAC."""
    console: Console
    kernel: Path
    initramfs: Path
    flags: Sequence[str] = ()
    """Options that its `init` reads: `acpi=ignore`, `agent=no`, `approve=yes`, `dirty=32`, …"""
    disks: Sequence[Disk] = ()
    memory: int = 128
    metadata: str = ""

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def mac(self) -> str:
        return f"52:54:00:77:00:{self.number:02x}"

    @property
    def xml(self) -> str:
        """Return the XML of its domain."""
        words = (f"fw.name={self.name}", f"fw.address={self.address}", *(f"fw.{flag}" for flag in self.flags))
        disks = "".join(_disk(disk, f"vd{'abcdefgh'[place]}") for place, disk in enumerate(self.disks))
        return _DOMAIN.format(
            name=escape(self.name),
            uuid=self.vm_id,
            metadata=self.metadata and f"<metadata>{self.metadata}</metadata>",
            memory=self.memory,
            kernel=escape(str(self.kernel)),
            initramfs=escape(str(self.initramfs)),
            words=escape(f"{_KERNEL_LINE} {' '.join(words)}"),
            console=quoteattr(str(self.console.path)),
            mac=self.mac,
            bridge=BRIDGE,
            disks=disks,
            odd=self.memory * 1024 - _ODD,
        )


_DOMAIN = """\
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  {metadata}
  <memory unit='MiB'>{memory}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{initramfs}</initrd>
    <cmdline>{words}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='custom' match='exact'><model>qemu64</model></cpu>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>restart</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    {disks}
    <controller type='usb' model='none'/>
    <controller type='virtio-serial'/>
    <interface type='bridge'>
      <mac address='{mac}'/>
      <source bridge='{bridge}'/>
      <model type='virtio'/>
      <rom enabled='no'/>
    </interface>
    <serial type='file'>
      <source path={console} append='on'/>
      <target port='0'/>
    </serial>
    <console type='file'>
      <source path={console} append='on'/>
      <target type='serial' port='0'/>
    </console>
    <channel type='unix'>
      <target type='virtio' name='org.qemu.guest_agent.0'/>
    </channel>
    <memballoon model='none'/>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-object'/>
    <qemu:arg value='memory-backend-ram,id=odd,size={odd}K'/>
    <qemu:arg value='-machine'/>
    <qemu:arg value='memory-backend=odd'/>
    <qemu:arg value='-m'/>
    <qemu:arg value='{odd}K'/>
  </qemu:commandline>
</domain>
"""


def file_disk(path: Path) -> Disk:
    """Describe a disk in a qcow2 file."""
    return Disk(kind="file", source=f"<source file={quoteattr(str(path))}/>", path=path, format="qcow2")


def network_disk(path: Path, *, address: str, port: int) -> Disk:
    """Describe a disk that is served over the network (NBD)."""
    source = f"<source protocol='nbd'><host name='{address}' port='{port}'/></source>"
    return Disk(kind="network", source=source, path=path, format="raw")


def _disk(disk: Disk, device: str) -> str:
    return (
        f"<disk type='{disk.kind}' device='disk'><driver name='qemu' type='{disk.format}' cache='none'/>"
        f"{disk.source}<target dev='{device}' bus='virtio'/></disk>"
    )
