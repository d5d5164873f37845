"""The server is killed at every stage of every work; after a restart it completes the work, once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.helpers.programs.process import until
from tests.machines.bed import Bed, Guest
from tests.machines.lifecycle import Lifecycle, lifecycle
from tests.machines.serving import WORK_PATIENCE, Service, serving

Sign = Callable[[Bed, Guest, Lifecycle], object]

OFF = "guest turns itself off"


@dataclass(frozen=True, kw_only=True)
class Work:
    """A kind of work and its visible effects."""

    path: str
    body: dict[str, str] = field(default_factory=dict)
    under_way: Sign
    ended: Sign
    """The visible effect when the hypervisor is done."""
    boots: int = 1
    suspended: int = 0
    afterwards: dict[str, str]
    options: dict[str, str] = field(default_factory=dict)


WORKS = {
    "freeze": Work(
        path="/v1/machines/web-0/freeze",
        under_way=lambda bed, guest, happened: happened.count("web-0", "Suspended Paused"),
        ended=lambda bed, guest, happened: happened.count("web-0", "Resumed"),
        suspended=1,
        afterwards={"kvm01": "running"},
    ),
    "reboot": Work(
        path="/v1/machines/web-0/restart",
        under_way=lambda bed, guest, happened: guest.console.matching("guest reboots"),
        ended=lambda bed, guest, happened: guest.console.boots == 2,
        boots=2,
        afterwards={"kvm01": "running"},
    ),
    "live-migration": Work(
        path="/v1/hosts/kvm01/service",
        body={"mode": "evacuate", "host_work": "external"},
        under_way=lambda bed, guest, happened: "kvm02" in bed.where("web-0"),
        ended=lambda bed, guest, happened: bed.where("web-0") == {"kvm02": "running"},
        afterwards={"kvm02": "running"},
        options={"bandwidth": "8"},
    ),
    "cold-move": Work(
        path="/v1/machines/web-0/redeploy",
        under_way=lambda bed, guest, happened: guest.console.matching(OFF),
        ended=lambda bed, guest, happened: bed.where("web-0") == {"kvm02": "running"},
        boots=2,
        afterwards={"kvm02": "running"},
    ),
    "evict": Work(
        path="/v1/machines/web-0/evict",
        under_way=lambda bed, guest, happened: guest.console.matching(OFF),
        ended=lambda bed, guest, happened: bed.where("web-0") == {"kvm01": "shut off"},
        afterwards={"kvm01": "shut off"},
    ),
    "terminate": Work(
        path="/v1/machines/web-0/terminate",
        under_way=lambda bed, guest, happened: guest.console.matching(OFF),
        ended=lambda bed, guest, happened: bed.where("web-0") == {},
        afterwards={},
        options={"destroy": "true"},
    ),
}
STAGES = ("announced", "approved", "under way", "ended")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", WORKS)
def test_a_killed_server_completes_each_work_once(bed: Bed, tmp_path: Path, name: str, stage: str) -> None:
    work = WORKS[name]
    guest = bed.guest("web-0", number=21, flags=["approve=no"])
    with (
        lifecycle(bed) as happened,
        serving(bed, tmp_path, {guest: "kvm01"}, spot=True, options=work.options) as service,
    ):
        guest.console.wait_for("guest sees")
        order = service.order(work.path, **work.body)
        if stage == "announced":
            service.restart()
        _approve(service)
        if stage == "under way":
            until(lambda: work.under_way(bed, guest, happened), what=stage, within=WORK_PATIENCE)
        if stage == "ended":
            until(lambda: work.ended(bed, guest, happened), what=stage, within=WORK_PATIENCE)
        if stage != "announced":
            service.restart()
        _wait_until_over(service, order)
        guest.console.wait_for_boot(work.boots)
        assert bed.where("web-0") == work.afterwards
        assert guest.console.boots == work.boots
        assert happened.count("web-0", "Suspended Paused") == work.suspended
        assert len(guest.console.matching(OFF)) <= 1


def _approve(service: Service) -> None:
    # A move is announced after the driver's precheck.
    (event,) = until(lambda: service.get("/v1/events")["events"], what="an event", within=WORK_PATIENCE)
    service.post(f"/v1/events/{event['id']}/approve")


def _wait_until_over(service: Service, order: str) -> None:
    """Wait until the machine's steps are done; the work on the host itself is external."""

    def over() -> bool:
        steps = service.steps(order)
        return bool(steps) and all(step["state"] == "done" for step in steps.values())

    try:
        until(over, what="steps that are done", within=WORK_PATIENCE)
    except AssertionError as late:
        raise AssertionError(f"{late}: {service.seen(order)}") from None
