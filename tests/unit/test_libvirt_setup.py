"""The libvirt driver as it is set up: options, a library that is missing, copies of definitions."""

import stat
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.clock import monotonic
from forewarn.config import Settings
from forewarn.core.errors import Invalid
from forewarn.core.words import HostName
from forewarn.drivers.driver_setup import DriverSetup, UnusableDriver
from forewarn.drivers.libvirt.driver import make
from forewarn.drivers.libvirt.kept_definitions import KeptDefinitions
from forewarn.drivers.libvirt.library import Declined
from forewarn.drivers.libvirt.options import LibvirtOptions

KVM = HostName("kvm04")


def setup(options: Mapping[str, Any]) -> DriverSetup:
    return DriverSetup(name="libvirt", settings=Settings(), options=options, monotonic=monotonic)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(UnusableDriver, match=r"pip install 'forewarn\[libvirt\]'"):
        make(setup({}))


def test_options_are_read_as_the_settings_say_them() -> None:
    said = {"shutdown-for": "90s", "destroy": True, "shared-paths": ["/srv/nfs"], "at-once": 2}
    options = setup(said).read(LibvirtOptions())
    assert (options.shutdown_for, options.destroy) == (timedelta(seconds=90), True)
    assert (options.shared_paths, options.limits.at_once) == (("/srv/nfs",), 2)


@pytest.mark.parametrize("said", [{"shutdown": "90s"}, {"bandwidth": -1}, {"freeze-for": "soon"}])
def test_a_wrong_option_is_named(said: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"\[drivers\.libvirt\] "):
        setup(said).read(LibvirtOptions())


def test_hosts_reach_one_another_by_their_uri_unless_it_is_said_how() -> None:
    own = LibvirtOptions()
    assert (own.peer(KVM, "qemu+ssh://a/system"), own.sent_to(KVM)) == ("qemu+ssh://a/system", None)
    said = LibvirtOptions(peer_uri="qemu+tls://{host}/system", migration_uri="tcp://{host}.storage")
    assert said.peer(KVM, "qemu+ssh://a/system") == "qemu+tls://kvm04/system"
    assert said.sent_to(KVM) == "tcp://kvm04.storage"


def test_a_kept_definition_is_read_again_and_for_nobody_else(tmp_path: Path) -> None:
    kept = KeptDefinitions(str(tmp_path / "definitions"))
    for xml in ("<domain/>", "<domain>secret</domain>"):
        kept.keep("0A", xml)
    assert kept.read("0a") == "<domain>secret</domain>"
    (file,) = (tmp_path / "definitions").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("directory", ["", "nowhere"])
def test_where_no_definition_is_kept_it_is_said_what_to_do(tmp_path: Path, directory: str) -> None:
    kept = KeptDefinitions(directory and str(tmp_path / directory))
    with pytest.raises(Declined, match="virsh define"):
        kept.read("0a")
