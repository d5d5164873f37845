"""Machines of a lost host come back elsewhere, and what they left there is cleared away when it is back."""

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
    """Have a machine recovered while its host cannot be reached, which has its domain and would start it."""
    guest = booted(hosts.bed)
    lost = hosts.bed.hosts["kvm01"]
    lost.virsh("autostart", "web-0")
    assert driver.reach(hosts.hosts["kvm01"]) is None  # its definition is copied
    lost.virsh("destroy", "web-0")
    lost.kill()
    assert hosts.step(guest, Work.RECOVER, to="kvm02").done(driver).host == "kvm02"
    guest.console.wait_for_boot(2)
    return guest


def reached(hosts: LibvirtBed, driver: Any) -> None:
    """Reach both hosts twice, as the server does again and again."""
    for name in ("kvm01", "kvm02") * 2:
        assert driver.reach(hosts.hosts[name]) is None


@pytest.mark.parametrize("after", ["a crash of libvirtd", "a boot of the host"])
def test_what_a_recovered_machine_left_is_cleared_away_when_its_host_is_back(
    hosts: LibvirtBed, tmp_path: Path, after: str
) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    guest = recovered(hosts, driver)
    back = hosts.bed.hosts["kvm01"]
    if after == "a boot of the host":  # libvirtd knows by a file of /run that it has started the domains
        back.run("rm", "-rf", "/run/libvirt/qemu")
    back.start()
    if after == "a boot of the host":
        until(lambda: back.state("web-0") == "running", what="a machine that its host has started by itself")
    reached(hosts, hosts.driver(definitions=str(tmp_path)))  # a server that was started since
    assert hosts.bed.where("web-0") == {"kvm02": "running"}
    assert "left-behind" not in hosts.bed.hosts["kvm02"].virsh("dumpxml", "web-0")
    assert (tmp_path / f"{guest.vm_id}.xml").read_text().startswith("<!-- on kvm02 -->")


def test_what_was_left_stays_while_it_may_be_all_that_there_is(hosts: LibvirtBed, tmp_path: Path) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    recovered(hosts, driver)
    hosts.bed.hosts["kvm02"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm02"].virsh("undefine", "web-0")
    hosts.bed.hosts["kvm01"].start()
    reached(hosts, driver)
    assert list(hosts.bed.where("web-0")) == ["kvm01"]


def test_a_machine_that_comes_back_to_the_host_it_was_recovered_from_stays_there(
    hosts: LibvirtBed, tmp_path: Path
) -> None:
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    guest = recovered(hosts, driver)
    back = hosts.bed.hosts["kvm01"]
    back.start()
    back.virsh("destroy", "web-0", check=False)
    back.virsh("undefine", "web-0")  # by a person, before forewarn has seen the host
    hosts.step(guest, Work.FREEZE, on="kvm02", to="kvm01").done(driver)
    reached(hosts, driver)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}


def test_a_copy_that_was_made_before_a_machine_moved_brings_none_back(
    hosts: LibvirtBed, tmp_path: Path
) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SOON)
    made = tmp_path / f"{guest.vm_id}.xml"
    hosts.step(guest, Work.REDEPLOY, to="kvm02").done(driver)
    assert made.read_text().startswith("<!-- on kvm02 -->")  # it was copied when it moved
    made.write_text(made.read_text().replace("on kvm02", "on kvm01"))
    hosts.bed.hosts["kvm02"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm02"].kill()
    why = hosts.step(guest, Work.RECOVER, on="kvm02", to="kvm01").failed(driver)
    assert "was made on kvm01, before it came to kvm02" in why


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


def test_a_lost_connection_is_let_go(hosts: LibvirtBed) -> None:
    # In this process: the test looks at the library's own object.
    driver = LibvirtDriver(LibvirtOptions(), wake=hosts.woken.add)
    host = hosts.hosts["kvm01"]
    old = weakref.ref(driver.connections.get(host).connection)
    hosts.bed.hosts["kvm01"].kill()
    hosts.bed.hosts["kvm01"].start()
    until(lambda: driver.reach(host) is None, what="a host that can be reached again")
    until(lambda: gc.collect() >= 0 and old() is None, what="a connection that is over")
