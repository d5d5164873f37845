"""A libvirtd that is killed or hangs, and guests that ignore requests: the work is done all the same."""

import signal
from pathlib import Path

import pytest

from tests.helpers.programs.process import until
from tests.machines.bed import Bed, Guest
from tests.machines.serving import WORK_PATIENCE, Service, serving

# About 60 MiB of a guest's memory are in use, enough time to cut the connection.
SLOWLY = {"bandwidth": "1"}
EVACUATE = {"mode": "evacuate", "host_work": "external"}


@pytest.mark.parametrize("whose", ["kvm01", "kvm02"])
def test_a_migration_outlives_a_killed_libvirtd_and_the_machine_runs_on_one_host(
    bed: Bed, tmp_path: Path, whose: str
) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}, options={"bandwidth": "4"}) as service:
        order = _migrating(bed, service, guest)
        bed.hosts[whose].kill()
        bed.hosts[whose].start()
        _through(service, order)
        assert bed.where("web-0") == {"kvm02": "running"}
        _ticks_on(guest)
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 1)


def test_a_hanging_libvirtd_delays_its_own_machines_only(bed: Bed, tmp_path: Path) -> None:
    stuck = bed.guest("stuck", number=21, on="kvm01", flags=["approve=yes"])
    free = bed.guest("free", number=22, on="kvm02", flags=["approve=yes"])
    with serving(bed, tmp_path, {stuck: "kvm01", free: "kvm02"}, options={"timeout": '"5s"'}) as service:
        for guest in (stuck, free):
            guest.console.wait_for("guest sees")
        bed.hosts["kvm01"].signal(signal.SIGSTOP)
        waits = service.order("/v1/machines/stuck/freeze")
        service.wait_for_order(waits, "started")
        goes_on = [service.order("/v1/machines/free/freeze")]
        service.wait_for_order(goes_on[0])
        assert service.seen(waits)["state"] == "started"
        bed.hosts["kvm01"].signal(signal.SIGCONT)
        service.wait_for_order(waits)
    assert (stuck.console.boots, free.console.boots) == (1, 1)


@pytest.mark.parametrize("work", ["evict", "restart"])
def test_a_guest_that_ignores_acpi_is_powered_off_after_its_timeout(
    bed: Bed, tmp_path: Path, work: str
) -> None:
    guest = bed.guest("web-0", number=21, flags=["acpi=ignore", "agent=no"])
    with serving(bed, tmp_path, {guest: "kvm01"}, spot=True, options={"shutdown-for": '"5s"'}) as service:
        guest.console.wait_for("guest sees")
        order = service.order(f"/v1/machines/web-0/{work}")
        guest.console.wait_for("guest ignores its power button")
        service.wait_for_order(order)
        if work == "restart":
            guest.console.wait_for_boot(2)
    assert bed.where("web-0") == {"kvm01": "shut off" if work == "evict" else "running"}


def test_an_abandoned_migration_is_aborted_and_the_machine_stays(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}, options=SLOWLY) as service:
        order = _migrating(bed, service, guest)
        service.post(f"/v1/orders/{order}/abandon")
        until(lambda: bed.where("web-0") == {"kvm01": "running"}, what="a machine on one host", within=120)
        _ticks_on(guest)
        assert service.host_of("web-0") == "kvm01"
    assert guest.console.boots == 1


def test_a_migration_that_does_not_converge_is_aborted_and_the_machine_moves_cold(
    bed: Bed, tmp_path: Path
) -> None:
    guest = bed.guest("web-0", number=21, flags=["dirty=24"])
    never = {"bandwidth": "2", "migrate-for": '"20s"', "auto-converge": "false"}
    with serving(bed, tmp_path, {guest: "kvm01"}, options=never) as service:
        guest.console.wait_for("guest dirties")
        _migrating(bed, service, guest)
        guest.console.wait_for_boot(2)
        until(lambda: service.host_of("web-0") == "kvm02", what="a machine that has moved", within=60)
        failures = [record["reason"] for record in service.history() if record["kind"] == "step-failed"]
    assert len(failures) == 2
    assert all("its migration did not finish within 20" in why for why in failures), failures
    assert guest.console.matching('guest sees .*"EventType": *"Redeploy"'), "it was moved cold unannounced"
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 2)


def _migrating(bed: Bed, service: Service, guest: Guest) -> str:
    """Begin to evacuate the first host, and wait for the beginning of a migration."""
    guest.console.wait_for("guest sees")
    order = service.order("/v1/hosts/kvm01/service", **EVACUATE)
    host = bed.hosts["kvm01"]
    until(
        lambda: "Memory processed" in host.virsh("domjobinfo", guest.name, check=False),
        what="a migration under way",
        within=WORK_PATIENCE,
    )
    return order


def _through(service: Service, order: str) -> None:
    """Wait until the machine has moved; retry a failed migration."""

    def moved() -> bool:
        step = service.steps(order)["web-0"]
        if step["state"] == "failed":
            service.post(f"/v1/orders/{order}/retry")
        return bool(step["state"] == "done")

    try:
        until(moved, what="a machine that has moved", within=WORK_PATIENCE)
    except AssertionError as late:
        raise AssertionError(f"{late}: {service.seen(order)}") from None


def _ticks_on(guest: Guest) -> None:
    ticks = len(guest.console.matching("guest ticks"))
    guest.console.wait_for("guest ticks", times=ticks + 2)
