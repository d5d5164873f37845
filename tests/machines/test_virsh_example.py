"""A command as a driver, on real guests: examples/drivers/virsh, called by a real server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, until
from tests.machines.bed import Bed

VIRSH = Path(__file__).parents[2] / "examples" / "drivers" / "virsh"
SETTINGS = """
[times]
unheard-notice = "0s"
preempt-notice = "0s"
terminate-notice = "0s"
linger = "0s"

[drivers.virsh]
kind = "command"
command = ["{virsh}", "{folder}/steps", "2", "20"]
"""
FLEET = """
[defaults]
driver = "virsh"
[hosts.kvm01]
uri = "{kvm01}"
[hosts.kvm02]
uri = "{kvm02}"
[[machines]]
name = "web-0"
host = "kvm01"
priority = "spot"
mobility = "live"
"""


@pytest.fixture
def program(bed: Bed, tmp_path: Path) -> Iterator[Program]:
    uris = {name: host.uri for name, host in bed.hosts.items()}
    (tmp_path / "forewarn.toml").write_text(SETTINGS.format(virsh=VIRSH, folder=tmp_path))
    (tmp_path / "fleet.toml").write_text(FLEET.format(**uris))
    flags = ("--config", tmp_path / "forewarn.toml", "--fleet", tmp_path / "fleet.toml")
    database = f"sqlite:///{tmp_path}/forewarn.db"
    served = Program(tmp_path, *flags, "--database", database, clock="system", before=bed.inside)
    # The operator API and its clients are in the bed's network.
    with served as program, bed.entered():
        yield program


def order_of(program: Program, order: str) -> Any:
    return program.get(f"/v1/orders/{order}")["order"]


def done(program: Program, what: str, machine: str = "web-0") -> Any:
    """Carry out work on a machine; return its step."""
    order = program.post(f"/v1/machines/{machine}/{what}")["order"]["id"]
    return ended(program, order)


def ended(program: Program, order: str) -> Any:
    over = ("done", "failed", "cancelled")
    until(lambda: order_of(program, order)["state"] in over, what="the order's end", within=240)
    found = order_of(program, order)
    assert found["state"] == "done", found
    return found["steps"][0]


def test_a_domain_is_paused_restarted_moved_and_evicted(program: Program, bed: Bed) -> None:
    guest = bed.guest("web-0", number=31, disks=[bed.network_disk("web-0")])
    guest.console.wait_for_boot()
    assert done(program, "freeze")["impact_seconds"] >= 2
    assert (bed.where("web-0"), guest.console.boots) == ({"kvm01": "running"}, 1)
    assert done(program, "restart")["impact_seconds"] > 0
    guest.console.wait_for_boot(2)
    done(program, "redeploy")
    guest.console.wait_for_boot(3)
    assert bed.where("web-0") == {"kvm02": "running"}
    assert program.get("/v1/machines/web-0")["machine"]["host"] == "kvm02"
    done(program, "evict")
    assert bed.where("web-0") == {"kvm02": "shut off"}
    done(program, "start")
    host = program.get("/v1/machines/web-0")["machine"]["host"]
    assert bed.where("web-0") == {host: "running"}


def test_a_domain_migrates_live_and_is_recovered_after_a_failure(program: Program, bed: Bed) -> None:
    guest = bed.guest("web-0", number=31, disks=[bed.network_disk("web-0")])
    guest.console.wait_for_boot()
    order = program.post("/v1/hosts/kvm01/service", json={"mode": "evacuate", "host_work": "external"})
    until(lambda: bed.where("web-0") == {"kvm02": "running"}, what="the migration", within=240)
    name = order["order"]["id"]
    until(
        lambda: program.call("POST", f"/v1/orders/{name}/complete", json={}).status_code == 200,
        what="work on an empty host",
    )
    assert guest.console.boots == 1
    bed.hosts["kvm02"].virsh("destroy", "web-0")  # like a failure of its host
    failed = program.post("/v1/hosts/kvm02/fail", json={"fenced": "pulled its plug"})["order"]["id"]
    ended(program, failed)
    assert bed.where("web-0") == {"kvm01": "running", "kvm02": "shut off"}


def test_an_unreachable_host_is_no_failure(program: Program, bed: Bed) -> None:
    bed.guest("web-0", number=31).console.wait_for_boot()
    bed.hosts["kvm01"].kill()
    order = program.post("/v1/machines/web-0/freeze")["order"]["id"]
    until(lambda: order_of(program, order)["steps"][0].get("why"), what="word of the host")
    step = order_of(program, order)["steps"][0]
    assert (step["state"], "does not answer" in step["why"]) == ("running", True)
    bed.hosts["kvm01"].start()
    ended(program, order)
    assert bed.where("web-0") == {"kvm01": "running"}
