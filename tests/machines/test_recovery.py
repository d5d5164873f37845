"""Machines of a lost host are recovered elsewhere, and stale domains are removed when it is back."""

import gc
import weakref
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.basic_types import Work
from forewarn.drivers.libvirt.driver import LibvirtDriver
from forewarn.drivers.libvirt.options import LibvirtOptions
from tests.helpers.programs.process import until
from tests.machines.bed import Guest
from tests.machines.libvirt_steps import LibvirtBed, booted

SOON = timedelta(seconds=2)


def recovered(hosts: LibvirtBed, driver: Any) -> Guest:
    """Recover a machine while its host is unreachable, which still has its domain with autostart."""
    guest = booted(hosts.bed)
    lost = hosts.bed.hosts["kvm01"]
    lost.virsh("autostart", "web-0")
    assert driver.reach(hosts.hosts["kvm01"]) is None  # copies the definition
    lost.virsh("destroy", "web-0")
    lost.kill()
    assert hosts.step(guest, Work.RECOVER, to="kvm02").done(driver).host == "kvm02"
    guest.console.wait_for_boot(2)
    return guest


def reached(hosts: LibvirtBed, driver: Any) -> None:
    """Reach both hosts twice, as the server does repeatedly."""
    for name in ("kvm01", "kvm02") * 2:
        assert driver.reach(hosts.hosts[name]) is None


@pytest.mark.parametrize("after", ["a crash of libvirtd", "a boot of the host"])
def test_a_stale_domain_is_removed_when_its_host_is_back(
    hosts: LibvirtBed, tmp_path: Path, after: str
) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    guest = recovered(hosts, driver)
    back = hosts.bed.hosts["kvm01"]
    if (
        after == "a boot of the host"
    ):  # a file in /run tells libvirtd that it has already autostarted its domains
        back.run("rm", "-rf", "/run/libvirt/qemu")
    back.start()
    if after == "a boot of the host":
        until(lambda: back.state("web-0") == "running", what="a machine that its host has started by itself")
    reached(hosts, hosts.driver(definitions=str(tmp_path)))  # a new server
    assert hosts.bed.where("web-0") == {"kvm02": "running"}
    assert "left-behind" not in hosts.bed.hosts["kvm02"].virsh("dumpxml", "web-0")
    assert (tmp_path / f"{guest.vm_id}.xml").read_text().startswith("<!-- on kvm02 -->")


def test_a_stale_domain_stays_while_it_may_be_the_only_one(hosts: LibvirtBed, tmp_path: Path) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    recovered(hosts, driver)
    hosts.bed.hosts["kvm02"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm02"].virsh("undefine", "web-0")
    hosts.bed.hosts["kvm01"].start()
    reached(hosts, driver)
    assert list(hosts.bed.where("web-0")) == ["kvm01"]


def test_a_machine_that_returns_to_its_old_host_stays_there(hosts: LibvirtBed, tmp_path: Path) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    guest = recovered(hosts, driver)
    back = hosts.bed.hosts["kvm01"]
    back.start()
    back.virsh("destroy", "web-0", check=False)
    back.virsh("undefine", "web-0")  # by a person, before forewarn has reached the host
    hosts.step(guest, Work.FREEZE, on="kvm02", to="kvm01").done(driver)
    reached(hosts, driver)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}


def test_a_copy_from_before_a_move_is_not_used(hosts: LibvirtBed, tmp_path: Path) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    made = tmp_path / f"{guest.vm_id}.xml"
    hosts.step(guest, Work.REDEPLOY, to="kvm02").done(driver)
    assert made.read_text().startswith("<!-- on kvm02 -->")  # copied at the move
    made.write_text(made.read_text().replace("on kvm02", "on kvm01"))
    hosts.bed.hosts["kvm02"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm02"].kill()
    why = hosts.step(guest, Work.RECOVER, on="kvm02", to="kvm01").failed(driver)
    assert "was made on kvm01, before it moved to kvm02" in why


def test_a_definition_that_was_changed_is_copied_soon(hosts: LibvirtBed, tmp_path: Path) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(definitions=str(tmp_path))
    host, made = hosts.hosts["kvm01"], tmp_path / f"{guest.vm_id}.xml"
    assert driver.reach(host) is None
    assert "changed since" not in made.read_text()
    described = "<description>changed since</description>"
    hosts.bed.hosts["kvm01"].run(
        "sh",
        "-c",
        f"virsh dumpxml --inactive web-0 | sed '0,/<memory /s||{described}<memory |' > /run/new.xml"
        " && virsh define /run/new.xml",
    )
    until(
        lambda: driver.reach(host) is None and "changed since" in made.read_text(),
        what="a copy of the new definition",
    )


def test_a_lost_connection_is_closed(hosts: LibvirtBed) -> None:
    # In this process, because the test inspects the library's object.
    driver = LibvirtDriver(LibvirtOptions(), wake=hosts.woken.add)
    host = hosts.hosts["kvm01"]
    old = weakref.ref(driver.connections.get(host).connection)
    hosts.bed.hosts["kvm01"].kill()
    hosts.bed.hosts["kvm01"].start()
    until(lambda: driver.reach(host) is None, what="a host that can be reached again")
    until(lambda: gc.collect() >= 0 and old() is None, what="a connection that is over")
