"""Each kind of work on real machines, by the libvirt driver alone."""

import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.clock import monotonic
from forewarn.control.driver import Cancelled, Done, Failed, NotBegun, Running, TooLate, Unknown
from forewarn.core.basic_types import Work
from tests.helpers.programs.process import until
from tests.machines.bed import Bed, Guest
from tests.machines.libvirt_steps import LibvirtBed, booted

IMAGES = "/var/lib/libvirt/images"
EPHEMERAL = (
    "<f:machine xmlns:f='urn:forewarn:machine:1'><f:ephemeral disk='vda' capacity='16777216'/></f:machine>"
)
NOVA = "<n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/1.1'/>"
SHORT = timedelta(seconds=2)


def with_agent(bed: Bed, guest: Guest, *, on: str = "kvm01") -> Guest:
    ping = '{"execute": "guest-ping"}'
    until(
        lambda: bed.hosts[on].virsh("qemu-agent-command", guest.name, ping, check=False),
        what="an agent that answers",
    )
    return guest


def pools(bed: Bed) -> None:
    for host in bed.hosts.values():
        if "images" not in host.virsh("pool-list", "--all"):
            host.virsh("pool-define-as", "images", "dir", "--target", IMAGES)
            host.virsh("pool-start", "images")


# Work on the machine's host


def test_a_machine_is_frozen_and_runs_on(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(freeze_for=timedelta(seconds=3))
    step = hosts.step(guest, Work.FREEZE)
    assert step.check(driver) == NotBegun()
    assert isinstance(step.begin(driver), Running)
    assert hosts.bed.where("web-0") == {"kvm01": "paused"}
    done = step.end(hosts.driver(freeze_for=timedelta(seconds=3)))  # like after a crash
    assert not isinstance(done, Failed)
    assert done.impact is not None
    assert done.impact >= 3
    assert hosts.bed.where("web-0") == {"kvm01": "running"}
    assert guest.console.boots == 1
    assert guest.vm_id in hosts.woken


def test_a_cancelled_freeze_resumes_the_machine(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(freeze_for=timedelta(hours=1))
    step = hosts.step(guest, Work.FREEZE)
    step.begin(driver)
    assert step.cancel(driver) == Cancelled()
    assert hosts.bed.where("web-0") == {"kvm01": "running"}
    assert isinstance(step.begin(driver), Failed)


def test_a_guest_agent_proves_a_reboot(hosts: LibvirtBed) -> None:
    guest = with_agent(hosts.bed, booted(hosts.bed))
    done = hosts.step(guest, Work.REBOOT).done(hosts.driver())
    assert guest.console.boots == 2
    assert done.impact is not None
    assert done.impact > 0


def test_a_guest_whose_agent_does_nothing_is_reset(hosts: LibvirtBed) -> None:
    guest = with_agent(hosts.bed, booted(hosts.bed, flags=["off=never"]))
    driver = hosts.driver(reboot_for=timedelta(seconds=30))
    hosts.step(guest, Work.REBOOT).done(driver)
    assert guest.console.boots == 2


def test_a_guest_without_an_agent_shuts_down_by_its_power_button_and_is_started(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, flags=["agent=no"])
    hosts.step(guest, Work.REBOOT).done(hosts.driver())
    assert "guest heard its power button" in guest.console.text
    guest.console.wait_for_boot(2)


def test_a_guest_that_ignores_its_power_button_is_powered_off(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, flags=["agent=no", "acpi=ignore"])
    hosts.step(guest, Work.REBOOT).done(hosts.driver(shutdown_for=SHORT))
    guest.console.wait_for_boot(2)


def test_an_evicted_machine_is_off_and_starts_again(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver()
    hosts.step(guest, Work.EVICT).done(driver)
    assert hosts.bed.where("web-0") == {"kvm01": "shut off"}
    start = hosts.step(guest, Work.START, on=None, to="kvm02")
    refused = driver.precheck(start.task)
    assert isinstance(refused, str)
    assert "kvm02 has no domain with the UUID" in refused
    assert hosts.step(guest, Work.START, on=None, to="kvm01").done(driver).host == "kvm01"
    guest.console.wait_for_boot(2)


def test_a_machine_that_stayed_is_verified_and_started_if_stopped(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver()
    assert hosts.step(guest, Work.START).done(driver).host is None
    assert guest.console.boots == 1
    hosts.bed.hosts["kvm01"].virsh("destroy", "web-0")
    hosts.step(guest, Work.START).done(driver)
    guest.console.wait_for_boot(2)
    hosts.bed.hosts["kvm01"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm01"].virsh("undefine", "web-0")
    assert "kvm01 has no domain with the UUID" in hosts.step(guest, Work.START).failed(driver)


@pytest.mark.parametrize(("destroy", "where"), [(False, {"kvm01": "shut off"}), (True, {})])
def test_a_terminated_machine_is_undefined_only_with_destroy(
    hosts: LibvirtBed, destroy: bool, where: dict[str, str]
) -> None:
    guest = booted(hosts.bed)
    hosts.step(guest, Work.TERMINATE).done(hosts.driver(destroy=destroy))
    assert hosts.bed.where("web-0") == where


# Moves


def test_a_running_machine_migrates(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, disks=[hosts.bed.network_disk("web-0")])
    driver = hosts.driver(bandwidth=32)
    step = hosts.step(guest, Work.FREEZE, to="kvm02")
    done = step.done(driver)
    assert (done.host, hosts.bed.where("web-0"), guest.console.boots) == ("kvm02", {"kvm02": "running"}, 1)
    assert done.impact is not None
    assert done.impact < 10
    assert step.progress


def test_a_migration_outlives_the_server(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    slow = hosts.driver(bandwidth=4)
    step = hosts.step(guest, Work.FREEZE, to="kvm02")
    assert isinstance(step.begin(slow), Running)
    until(lambda: step.check(slow) and step.progress, what="a migration under way")
    other = hosts.driver(bandwidth=4)  # without the first driver's background call
    assert isinstance(step.check(other), Running)
    done = step.end(other)
    assert not isinstance(done, Failed)
    assert (done.host, hosts.bed.where("web-0")) == ("kvm02", {"kvm02": "running"})


def test_a_migration_can_be_cancelled(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(bandwidth=1)
    step = hosts.step(guest, Work.FREEZE, to="kvm02")
    step.begin(driver)
    until(lambda: step.check(driver) and step.progress, what="a migration under way")
    assert step.cancel(driver) == Cancelled()
    assert hosts.bed.where("web-0") == {"kvm01": "running"}


def test_a_migration_that_takes_too_long_is_aborted(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(bandwidth=1, migrate_for=timedelta(seconds=5))
    assert hosts.step(guest, Work.FREEZE, to="kvm02").failed(driver)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}


def test_a_machine_moves_with_its_disks_and_empty_ephemeral_ones(hosts: LibvirtBed) -> None:
    pools(hosts.bed)
    own, shared = hosts.bed.own_disk("own", on="kvm01"), hosts.bed.shared_disk("shared")
    guest = booted(hosts.bed, disks=[own, shared], metadata=EPHEMERAL)
    driver = hosts.driver(shared_paths=(str(shared.path.parent),))
    done = hosts.step(guest, Work.REDEPLOY, to="kvm02").done(driver)
    assert (done.host, hosts.bed.where("web-0")) == ("kvm02", {"kvm02": "running"})
    guest.console.wait_for_boot(2)
    assert "guest has disk vda: nothing" in guest.console.text.rpartition("guest is up")[0]
    assert not (hosts.bed.hosts["kvm01"].images / own.path.name).exists()
    hosts.bed.hosts["kvm02"].virsh("vol-delete", str(own.path), check=False)


def test_a_machine_with_a_local_disk_is_refused(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, disks=[hosts.bed.own_disk("own", on="kvm01")])
    for work in (Work.REDEPLOY, Work.FREEZE):
        why = hosts.step(guest, work, to="kvm02").failed(hosts.driver())
        assert f"disk vda ({IMAGES}/own.qcow2) is not shared by kvm01 and kvm02" in why
    assert (hosts.bed.where("web-0"), guest.console.boots) == ({"kvm01": "running"}, 1)


def test_a_machine_without_room_on_its_target_returns_to_its_source(hosts: LibvirtBed) -> None:
    pools(hosts.bed)
    own = hosts.bed.own_disk("own", on="kvm01")
    guest = booted(hosts.bed, disks=[own], metadata=EPHEMERAL)
    target = hosts.bed.hosts["kvm02"]
    target.run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", IMAGES)
    try:
        why = hosts.step(guest, Work.REDEPLOY, to="kvm02").failed(hosts.driver())
    finally:
        target.run("umount", IMAGES)
    assert "kvm02 does not take it" in why
    assert "it runs on its source again" in why
    assert hosts.bed.where("web-0") == {"kvm01": "running"}
    guest.console.wait_for_boot(2)


def test_a_machine_of_a_lost_host_is_recovered_from_the_copy_of_its_definition(
    hosts: LibvirtBed, tmp_path: Path
) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(definitions=str(tmp_path), connect_for=SHORT)
    assert driver.reach(hosts.hosts["kvm01"]) is None
    recover = hosts.step(guest, Work.RECOVER, to="kvm02")
    assert "fence it" in recover.failed(driver)
    hosts.bed.hosts["kvm01"].virsh("destroy", "web-0")
    hosts.bed.hosts["kvm01"].kill()
    assert hosts.step(guest, Work.RECOVER, to="kvm02").done(driver).host == "kvm02"
    guest.console.wait_for_boot(2)


def test_a_host_that_is_back_loses_its_stale_domains(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    hosts.bed.hosts["kvm01"].virsh("destroy", "web-0")
    assert hosts.step(guest, Work.RECOVER, to="kvm02").done(hosts.driver()).host == "kvm02"
    assert hosts.bed.where("web-0") == {"kvm02": "running"}


# Refusals and unknown results


def test_a_machine_of_a_wrong_uuid_is_not_terminated(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(destroy=True)
    wrong = hosts.step(replace(guest, vm_id="00000000-0000-4000-8000-000000000001"), Work.TERMINATE)
    assert wrong.check(driver) == NotBegun()
    assert f'declare vm-id = "{guest.vm_id}"' in wrong.failed(driver)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}


def test_a_termination_whose_end_was_not_saved_is_done(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    step = hosts.step(guest, Work.TERMINATE)
    assert isinstance(step.begin(hosts.driver(destroy=True)), Running)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}  # nothing happens before the mark is saved
    step.end(hosts.driver(destroy=True))
    assert hosts.bed.where("web-0") == {}
    assert step.check(hosts.driver(destroy=True)) == Done()  # like after a crash


def test_a_machine_with_saved_memory_does_not_move(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    hosts.bed.hosts["kvm01"].virsh("managedsave", "web-0")
    why = hosts.step(guest, Work.REDEPLOY, to="kvm02").failed(hosts.driver())
    assert "it has saved memory" in why


def test_a_domain_of_another_manager_is_left_alone(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, metadata=NOVA)
    why = hosts.step(guest, Work.REBOOT).failed(hosts.driver())
    assert "managed by OpenStack's nova" in why


def test_a_missing_machine_is_named(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    why = hosts.step(guest, Work.REBOOT, on="kvm02").failed(hosts.driver())
    assert f"kvm02 has no domain with the UUID {guest.vm_id} of web-0: declare its host" in why


def test_an_outdated_attempt_is_refused_and_a_newer_one_runs(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(freeze_for=timedelta(seconds=1))
    first = hosts.step(guest, Work.FREEZE)
    second = first.attempt(2)
    second.done(driver)
    assert first.begin(driver) == Failed("attempt 1 is outdated: attempt 2 of the step has begun")
    assert first.cancel(driver) == Cancelled()
    assert second.cancel(driver) == TooLate()


def test_a_hanging_host_times_out_and_delays_no_other_host(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed, on="kvm02")
    driver = hosts.driver(keepalive=timedelta(seconds=1), connect_for=SHORT)
    assert driver.reach(hosts.hosts["kvm01"]) is None
    hosts.bed.hosts["kvm01"].signal(signal.SIGSTOP)
    began = monotonic()
    assert driver.reach(hosts.hosts["kvm01"]) is not None  # with the old connection
    assert driver.reach(hosts.hosts["kvm01"]) is not None  # with a new connection
    assert monotonic() - began < 20
    hosts.step(guest, Work.FREEZE, on="kvm02").done(driver)
    hosts.bed.hosts["kvm01"].signal(signal.SIGCONT)
    until(lambda: driver.reach(hosts.hosts["kvm01"]) is None, what="a host that can be reached again")


def test_a_step_is_unknown_until_its_host_is_back(hosts: LibvirtBed) -> None:
    guest = booted(hosts.bed)
    driver = hosts.driver(freeze_for=timedelta(seconds=1))
    step = hosts.step(guest, Work.FREEZE)
    step.begin(driver)
    hosts.bed.hosts["kvm01"].kill()
    assert isinstance(step.check(driver), Unknown)
    hosts.bed.hosts["kvm01"].start()
    assert not isinstance(step.end(driver), Failed)
    assert hosts.bed.where("web-0") == {"kvm01": "running"}
