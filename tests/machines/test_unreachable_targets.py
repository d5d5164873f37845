"""Targets whose libvirtd is down: forewarn detects it soon, and a short outage changes no work."""

import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.helpers.programs.process import until
from tests.machines.bed import Bed
from tests.machines.serving import WORK_PATIENCE, Service, serving

EVACUATE = {"mode": "evacuate", "host_work": "external"}
# Slow enough to cut the migration, and fast enough to finish.
OPTIONS = {"bandwidth": "4"}
# Generous, because the computer may be busy; the recorded figure counts.
SOON = 60.0


def _host(service: Service, name: str) -> dict[str, Any]:
    found: dict[str, Any] = service.get(f"/v1/hosts/{name}")["host"]
    return found


def _known_within(service: Service, name: str, *, reachable: bool) -> float:
    """Wait until a host is shown as reachable or not; return the seconds."""
    began = monotonic()
    until(lambda: _host(service, name)["reachable"] is reachable, what=f"{name}: {reachable}", within=SOON)
    return monotonic() - began


@pytest.mark.parametrize("way", ["killed", "hangs"])
def test_an_unreachable_target_is_detected_soon_and_waited_for(
    bed: Bed, tmp_path: Path, figure: Callable[[str], None], way: str
) -> None:
    guest = bed.guest("web-0", number=21, flags=["approve=yes"])
    target = bed.hosts["kvm02"]
    with serving(bed, tmp_path, {guest: "kvm01"}) as service:
        guest.console.wait_for("guest sees")
        _known_within(service, "kvm02", reachable=True)
        target.kill() if way == "killed" else target.signal(signal.SIGSTOP)
        away = _known_within(service, "kvm02", reachable=False)
        assert 'forewarn_host_reachable{host="kvm02"} 0.0' in service.call("GET", "/metrics").text
        assert _host(service, "kvm02")["unreachable_since"]
        planned = service.call(
            "POST",
            "/v1/rollouts",
            json={"hosts": ["kvm01"], "action": "service", "dry_run": True},
        ).text
        assert "kvm02 cannot be reached since" in planned
        order = service.order("/v1/hosts/kvm01/service", **EVACUATE)
        until(
            lambda: "kvm02 cannot be reached since" in f"{service.seen(order)['waiting']}",
            what="an order that says why it waits",
            within=SOON,
        )
        target.start() if way == "killed" else target.signal(signal.SIGCONT)
        back = _known_within(service, "kvm02", reachable=True)
        until(
            lambda: service.steps(order)["web-0"]["state"] == "done",
            what="a machine that has moved by itself",
            within=WORK_PATIENCE,
        )
        kinds = service.kinds()
        assert "step-failed" not in kinds
        assert kinds.count("host-unreachable") == kinds.count("host-reachable")
        figure(f"a libvirtd that is {way}: known after {away:.1f} s, and {back:.1f} s after it is back")
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 1)


def test_a_live_migration_continues_after_an_outage_of_its_target(bed: Bed, tmp_path: Path) -> None:
    guest = bed.guest("web-0", number=21)
    source, target = bed.hosts["kvm01"], bed.hosts["kvm02"]
    with serving(bed, tmp_path, {guest: "kvm01"}, options=OPTIONS) as service:
        guest.console.wait_for("guest sees")
        order = service.order("/v1/hosts/kvm01/service", **EVACUATE)
        until(
            lambda: "Memory processed" in source.virsh("domjobinfo", guest.name, check=False),
            what="a migration under way",
            within=WORK_PATIENCE,
        )
        target.kill()
        _known_within(service, "kvm02", reachable=False)
        target.start()
        until(
            lambda: service.steps(order)["web-0"]["state"] == "done",
            what="a machine that has moved by itself",
            within=WORK_PATIENCE,
        )
        records = service.history()
        assert not [each for each in records if each["kind"] == "step-failed"], records
        assert not guest.console.matching('guest sees .*"EventType": *"Redeploy"')
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm02": "running"}, 1)
