"""The set-up of the libvirt driver: options, a missing library, copies of definitions."""

import stat
import sys
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from forewarn.clock import SystemClock, monotonic
from forewarn.config import Settings
from forewarn.core.basic_types import HostName
from forewarn.core.errors import Invalid
from forewarn.drivers.driver_setup import DriverSetup, UnusableDriver
from forewarn.drivers.libvirt.definition_copies import UNUSED_FOR, DefinitionCopies
from forewarn.drivers.libvirt.driver import make
from forewarn.drivers.libvirt.library import LibvirtRefused
from forewarn.drivers.libvirt.options import LibvirtOptions
from tests.helpers.service.racing import at_once

KVM = HostName("kvm04")


def setup(options: Mapping[str, Any]) -> DriverSetup:
    return DriverSetup(name="libvirt", settings=Settings(), options=options, monotonic=monotonic)


def test_a_missing_library_is_reported_with_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(UnusableDriver, match=r"pip install 'forewarn\[libvirt\]'"):
        make(setup({}))


def test_options_are_read_from_the_settings() -> None:
    said = {"shutdown-for": "90s", "destroy": True, "shared-paths": ["/srv/nfs"], "at-once": 2}
    options = setup(said).read(LibvirtOptions())
    assert (options.shutdown_for, options.destroy) == (timedelta(seconds=90), True)
    assert (options.shared_paths, options.limits.at_once) == (("/srv/nfs",), 2)


@pytest.mark.parametrize("said", [{"shutdown": "90s"}, {"bandwidth": -1}, {"freeze-for": "soon"}])
def test_a_wrong_option_is_named(said: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"\[drivers\.libvirt\] "):
        setup(said).read(LibvirtOptions())


def test_hosts_reach_each_other_by_their_uri_unless_set() -> None:
    own = LibvirtOptions()
    assert (own.peer(KVM, "qemu+ssh://a/system"), own.memory_uri(KVM)) == ("qemu+ssh://a/system", None)
    said = LibvirtOptions(peer_uri="qemu+tls://{host}/system", migration_uri="tcp://{host}.storage")
    assert said.peer(KVM, "qemu+ssh://a/system") == "qemu+tls://kvm04/system"
    assert said.memory_uri(KVM) == "tcp://kvm04.storage"


def test_a_copy_of_a_definition_is_private(tmp_path: Path) -> None:
    kept = DefinitionCopies(str(tmp_path / "definitions"))
    for xml in ("<domain/>", "<domain>secret</domain>"):
        kept.write("0A", xml, host=KVM)
    assert kept.read("0a", host=KVM) == "<!-- on kvm04 -->\n<domain>secret</domain>"
    (file,) = (tmp_path / "definitions").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["kvm04", "rack-1--kvm", "-", "a b"])
def test_a_copy_from_another_host_is_not_used(tmp_path: Path, name: str) -> None:
    kept, host = DefinitionCopies(str(tmp_path)), HostName(name)
    kept.write("0a", "<domain/>", host=host)
    assert ElementTree.fromstring(kept.read("0a", host=host)).tag == "domain"
    with pytest.raises(LibvirtRefused, match="before it moved to elsewhere"):
        kept.read("0a", host=HostName("elsewhere"))


def test_a_copy_of_an_earlier_version_is_used(tmp_path: Path) -> None:
    (tmp_path / "0a.xml").write_text("<domain/>")
    assert DefinitionCopies(str(tmp_path)).read("0a", host=KVM) == "<domain/>"


def test_copies_of_missing_domains_are_deleted(tmp_path: Path) -> None:
    kept, now = DefinitionCopies(str(tmp_path)), SystemClock().now()
    for uuid, host in (("0a", KVM), ("0b", KVM), ("0c", HostName("kvm05"))):
        kept.write(uuid, "<domain/>", host=host)
    kept.prune(KVM, ["0B"], now=now)  # the machine may be migrating
    assert left(tmp_path) == {"0a", "0b", "0c"}
    kept.prune(KVM, ["0B"], now=now + UNUSED_FOR * 2)
    assert left(tmp_path) == {"0b", "0c"}
    kept.forget("0C")
    assert left(tmp_path) == {"0b"}


def left(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir()}


@pytest.mark.parametrize("directory", ["", "nowhere"])
def test_without_a_copy_the_error_tells_what_to_do(tmp_path: Path, directory: str) -> None:
    kept = DefinitionCopies(directory and str(tmp_path / directory))
    kept.forget("0a")
    kept.prune(KVM, (), now=SystemClock().now())
    with pytest.raises(LibvirtRefused, match="virsh define"):
        kept.read("0a", host=KVM)


def test_concurrent_writes_leave_a_complete_copy(tmp_path: Path) -> None:
    kept = DefinitionCopies(str(tmp_path))
    texts = [f"<domain>{each * 5000}</domain>" for each in "abcd"]
    for _ in range(20):
        at_once([partial(kept.write, "0a", text, host=KVM) for text in texts])
        assert kept.read("0a", host=KVM).partition("\n")[2] in texts
