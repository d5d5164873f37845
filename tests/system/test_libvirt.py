"""A real guest on a real hypervisor boots, freezes and reboots. `make test-machines` covers the rest."""

from pathlib import Path

from tests.machines import bed as beds
from tests.machines.lifecycle import lifecycle
from tests.machines.serving import serving


def test_a_real_guest_approves_and_is_frozen_and_rebooted(tmp_path: Path) -> None:
    with beds.built(with_hosts=["kvm01"]) as bed, lifecycle(bed) as happened:
        guest = bed.guest("web-0", number=21)
        with serving(bed, tmp_path, {guest: "kvm01"}) as service:
            first = guest.console.wait_for_boot()
            guest.console.wait_for("guest sees")
            service.wait_for_order(service.order("/v1/machines/web-0/freeze"))
            guest.console.wait_for(r"guest approves .* 200 ")
            happened.wait_for("web-0", "Suspended Paused")
            assert guest.console.boots == 1
            service.wait_for_order(service.order("/v1/machines/web-0/restart"))
            guest.console.wait_for(r"guest approves .* 200 ", times=2)
            assert guest.console.wait_for_boot(2) != first
