"""The whole way with a real guest: it polls, sees an event, approves it, and the work is done."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.programs.process import until
from tests.machines.bed import Bed, Guest
from tests.machines.lifecycle import lifecycle
from tests.machines.serving import serving

Figure = Callable[[str], None]

FREEZE_SECONDS = 3


def test_a_guest_that_approves_is_frozen_on_its_host(bed: Bed, tmp_path: Path, figure: Figure) -> None:
    guest = bed.guest("web-0", number=21)
    options = {"freeze-for": f'"{FREEZE_SECONDS}s"'}
    with lifecycle(bed) as happened, serving(bed, tmp_path, {guest: "kvm01"}, options=options) as service:
        _ready(guest)
        order = service.order("/v1/machines/web-0/freeze")
        _approved(guest, "Freeze")
        service.wait_for_order(order)
        _ticks_on(guest)
        step = service.steps(order)["web-0"]
        happened.wait_for("web-0", "Resumed")
        assert happened.count("web-0", "Suspended Paused") == 1
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm01": "running"}, 1)
    assert step["impact_seconds"] >= FREEZE_SECONDS
    figure(f"frozen for {FREEZE_SECONDS} s: {_told(guest, step)}")


def test_a_guest_that_approves_is_rebooted_and_its_console_shows_the_second_boot(
    bed: Bed, tmp_path: Path, figure: Figure
) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        first = _ready(guest)
        order = service.order("/v1/machines/web-0/restart")
        _approved(guest, "Reboot")
        second = guest.console.wait_for_boot(2)
        service.wait_for_order(order)
        step = service.steps(order)["web-0"]
    assert first != second
    assert guest.console.matching("guest reboots"), "it was reset, though it has an agent"
    assert step["impact_seconds"] > 0
    assert guest.console.boots == 2
    figure(f"rebooted: {_told(guest, step)}")


def test_a_running_guest_migrates_from_its_host(bed: Bed, tmp_path: Path, figure: Figure) -> None:
    guest = bed.guest("web-0", number=21, flags=["tick=0.1"], disks=[bed.network_disk("web-0")])
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        _ready(guest)
        order = service.order("/v1/hosts/kvm01/service", mode="evacuate", host_work="external")
        _approved(guest, "Freeze")
        until(lambda: service.host_of("web-0") == "kvm02", what="a machine on the other host", within=240)
        _ticks_on(guest)
        step = service.steps(order)["web-0"]
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 1)
    assert 0 < step["impact_seconds"] <= _duration(guest)
    uptimes = [float(line.rpartition(" ")[2]) for line in guest.console.matching(r"guest ticks at [\d.]+$")]
    assert uptimes == sorted(uptimes)
    figure(f"live-migrated: {_told(guest, step)}")


def test_a_guest_migrates_to_the_host_that_an_operator_names(
    bed: Bed, tmp_path: Path, figure: Figure
) -> None:
    guest = bed.guest("web-0", number=21, flags=["tick=0.1"], disks=[bed.network_disk("web-0")])
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        _ready(guest)
        order = service.order("/v1/machines/web-0/move", to="kvm02", live=True)
        _approved(guest, "Freeze")
        service.wait_for_order(order)
        _ticks_on(guest)
        step = service.steps(order)["web-0"]
        assert (service.host_of("web-0"), step["target"]) == ("kvm02", "kvm02")
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 1)
    figure(f"moved live: {_told(guest, step)}")


def test_a_guest_that_did_not_start_with_its_host_is_started(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        _ready(guest)
        order = service.order("/v1/hosts/kvm01/service", mode="in-place", host_work="external")
        _approved(guest, "Reboot")
        service.wait_for_order(order, "started")
        bed.hosts["kvm01"].virsh("destroy", "web-0")  # like the reboot of a host without autostart
        service.post(f"/v1/orders/{order}/complete")
        guest.console.wait_for_boot(2)
        service.wait_for_order(order)
        assert service.steps(order)["web-0"]["state"] == "done"
    assert bed.where("web-0") == {"kvm01": "running"}


def test_a_rollout_waits_for_a_guest_that_stops_after_its_work(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        _ready(guest)
        hosts = ["kvm01", "kvm02"]
        body = {"hosts": hosts, "action": "freeze", "gap_seconds": 3600, "health_seconds": 300}
        path = f"/v1/rollouts/{service.post('/v1/rollouts', json=body)['rollout']['id']}"

        def rollout() -> dict[str, Any]:
            return dict(service.get(path)["rollout"])

        _approved(guest, "Freeze")
        until(lambda: rollout()["waves"][0]["state"] == "done", what="the first wave", within=240)
        bed.hosts["kvm01"].virsh("destroy", "web-0")
        off = {"what": "web-0", "reason": "is off, as its hypervisor says, since its work"}
        until(lambda: off in rollout()["waiting"], what="the rollout to wait for its machine", within=240)


def test_a_cold_guest_is_moved_with_its_disk(bed: Bed, tmp_path: Path, figure: Figure) -> None:
    guest = bed.guest("web-0", number=21, disks=[bed.network_disk("web-0")])
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        _ready(guest)
        order = service.order("/v1/machines/web-0/redeploy")
        _approved(guest, "Redeploy")
        service.wait_for_order(order)
        guest.console.wait_for_boot(2)
        place, step = service.host_of("web-0"), service.steps(order)["web-0"]
    assert (place, bed.where("web-0")) == ("kvm02", {"kvm02": "running"})
    assert guest.console.matching("guest has disk vda: written by web-0")
    assert step["impact_seconds"] > 0
    figure(f"moved cold: {_told(guest, step)}")


def test_an_evicted_guest_shuts_down_and_can_be_started(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}, spot=True) as service:
        _ready(guest)
        service.wait_for_order(service.order("/v1/machines/web-0/evict"))
        assert bed.where("web-0") == {"kvm01": "shut off"}
        assert guest.console.matching("guest turns itself off")
        service.wait_for_order(service.order("/v1/machines/web-0/start"))
        guest.console.wait_for_boot(2)
    assert len(bed.where("web-0")) == 1


def test_a_terminated_guest_is_off_and_undefined_if_set(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    with serving(bed, tmp_path, {guest: "kvm01"}, options={"destroy": "true"}) as service:
        _ready(guest)
        order = service.order("/v1/machines/web-0/terminate")
        _approved(guest, "Terminate")
        service.wait_for_order(order)
    assert bed.where("web-0") == {}


def _ready(guest: Guest) -> str:
    """Wait until a guest has booted and polled; return its boot."""
    boot = guest.console.wait_for_boot()
    guest.console.wait_for("guest sees")
    return boot


def _approved(guest: Guest, kind: str) -> None:
    guest.console.wait_for(f'guest sees .*"EventType": *"{kind}"')
    guest.console.wait_for("guest approves .* 200 ")


def _duration(guest: Guest) -> int:
    """Return the duration in the guest's event."""
    seen = guest.console.matching('"DurationInSeconds"')[-1]
    found = re.search(r'"DurationInSeconds": *(-?\d+)', seen)
    assert found is not None
    return int(found[1])


def _told(guest: Guest, step: dict[str, Any]) -> str:
    return f"announced {_duration(guest)} s, measured {step['impact_seconds']:.2f} s"


def _ticks_on(guest: Guest) -> None:
    ticks = len(guest.console.matching("guest ticks"))
    guest.console.wait_for("guest ticks", times=ticks + 2)
