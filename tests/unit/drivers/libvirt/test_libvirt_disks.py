"""Which disks of a domain all hosts share."""

import pytest

from forewarn.drivers.libvirt import definitions

XML = """
<domain type='kvm'>
  <name>web-0</name>
  <devices>
    <disk type='network' device='disk'>
      <source protocol='{protocol}' name='web'>{hosts}</source>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
"""


@pytest.mark.parametrize(
    ("hosts", "served_by_host"),
    [
        ("<host name='10.0.0.5' port='10809'/>", None),
        ("", None),  # a cluster from the host's own settings
        ("<host transport='unix' socket='/run/nbd.sock'/>", "/run/nbd.sock"),
        ("<host name='localhost' port='10809'/>", "localhost"),
        ("<host name='127.0.0.1' port='10809'/>", "127.0.0.1"),
        ("<host name='[::1]' port='10809'/>", "[::1]"),
        ("<host name='ceph1'/><host name='ceph2'/>", None),
    ],
)
def test_a_disk_that_its_host_serves_is_not_shared(hosts: str, served_by_host: str | None) -> None:
    (disk,) = definitions.read(XML.format(protocol="nbd", hosts=hosts)).disks
    assert (disk.served_by_host, disk.network) == (served_by_host, served_by_host is None)


def test_a_backing_file_that_its_host_serves_is_not_shared() -> None:
    xml = """
    <domain><devices><disk type='network'>
      <source protocol='nbd'><host name='10.0.0.5'/></source><target dev='vda'/>
      <backingStore type='network'>
        <source protocol='nbd'><host transport='unix' socket='/run/base.sock'/></source>
      </backingStore>
    </disk></devices></domain>
    """
    over, below = definitions.read(xml).disks
    assert (over.network, below.network, below.served_by_host) == (True, False, "/run/base.sock")
