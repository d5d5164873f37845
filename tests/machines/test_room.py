"""Too little room for moving machines: on a disk, or on the remaining hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.programs.process import until
from tests.machines import bed as beds
from tests.machines.bed import Bed
from tests.machines.bed.bed import HOSTS
from tests.machines.serving import WORK_PATIENCE, Service, serving

EPHEMERAL = "<f:machine xmlns:f='urn:forewarn:machine:1'><f:ephemeral disk='vda'/></f:machine>"
EVACUATE = {"mode": "evacuate", "host_work": "external"}


@pytest.fixture
def three() -> Iterator[Bed]:
    with beds.built(with_hosts=tuple(HOSTS)) as made:
        yield made


def test_a_cold_move_creates_the_ephemeral_disk_again(bed: Bed, tmp_path: Path) -> None:
    with bed.hosts["kvm01"].pool(), bed.hosts["kvm02"].pool():
        disk = bed.own_disk("cold", on="kvm01")
        guest = bed.guest("web-0", number=21, disks=[disk], metadata=EPHEMERAL)
        with serving(bed, tmp_path, {guest: "kvm01"}) as service:
            guest.console.wait_for("guest sees")
            service.wait_for_order(service.order("/v1/machines/web-0/redeploy"))
            guest.console.wait_for_boot(2)
        assert bed.where("web-0") == {"kvm02": "running"}
        assert len(guest.console.matching("guest has disk vda: nothing")) == 2
        bed.remove_guests()


@pytest.mark.parametrize("how", ["cold", "live"])
def test_a_machine_stays_on_its_source_if_the_targets_disk_is_full(
    bed: Bed, tmp_path: Path, how: str
) -> None:
    with bed.hosts["kvm01"].pool(), bed.hosts["kvm02"].pool(size="4M" if how == "live" else "64k"):
        disk = bed.own_disk(how, on="kvm01", written="8M")
        guest = bed.guest("web-0", number=21, disks=[disk], metadata=EPHEMERAL)
        with serving(bed, tmp_path, {guest: "kvm01"}, mobility=how) as service:
            guest.console.wait_for("guest sees")
            if how == "cold":
                order = service.order("/v1/machines/web-0/redeploy")
            else:
                order = service.order("/v1/hosts/kvm01/service", **EVACUATE)
            why = _failed(service, order)
            until(
                lambda: bed.where("web-0") == {"kvm01": "running"},
                what="it where it was",
                within=WORK_PATIENCE,
            )
            assert service.host_of("web-0") == "kvm01"
        assert why
        bed.remove_guests()


@pytest.mark.parametrize("mobility", ["live", "live-only"])
def test_a_guest_with_a_local_disk_gets_no_event(bed: Bed, tmp_path: Path, mobility: str) -> None:
    guest = bed.guest("web-0", number=21, disks=[bed.own_disk("own", on="kvm01")])
    with serving(bed, tmp_path, {guest: "kvm01"}, mobility=mobility) as service:
        guest.console.wait_for("guest sees")
        order = service.order("/v1/hosts/kvm01/service", **EVACUATE)
        said = until(
            lambda: next(
                (why["reason"] for why in service.seen(order)["waiting"] if "disk" in why["reason"]), ""
            ),
            what="the disk that prevents the move",
            within=WORK_PATIENCE,
        )
        assert "is not shared by kvm01 and kvm02" in f"{said}"
        assert ("it is live-only" in f"{said}") is (mobility == "live-only")
        assert "event-scheduled" not in service.kinds()
    assert bed.where("web-0") == {"kvm01": "running"}
    bed.remove_guests()


def test_two_concurrent_evacuations_wait_for_room(three: Bed, tmp_path: Path) -> None:
    guests = {
        three.guest("a", number=21, on="kvm01"): "kvm01",
        three.guest("b", number=22, on="kvm02"): "kvm02",
    }
    room = {"kvm01": 1, "kvm02": 1, "kvm03": 1}
    with serving(three, tmp_path, guests, room=room) as service:
        for guest in guests:
            guest.console.wait_for("guest sees")
        orders = {host: service.order(f"/v1/hosts/{host}/service", **EVACUATE) for host in ("kvm01", "kvm02")}
        first = until(lambda: _emptied(service), what="a host that is empty", within=WORK_PATIENCE)
        (second,) = {"kvm01", "kvm02"} - {first}
        assert service.seen(orders[second])["waiting"], "nothing tells what it waits for"
        assert sorted(_places(three).values()) == sorted([second, "kvm03"])
        _work_done(service, orders[first])
        until(lambda: _places(three).keys() == {"a", "b"} and second not in _places(three).values(),
              what="the second host empty", within=WORK_PATIENCE)  # fmt: skip
        _work_done(service, orders[second])
    assert sorted(_places(three).values()) == sorted([first, "kvm03"])
    assert [guest.console.boots for guest in guests] == [1, 1]


def _failed(service: Service, order: str) -> str:
    def failed() -> str | None:
        step = service.steps(order)["web-0"]
        return step["why"] if step["state"] == "failed" else None

    try:
        return until(failed, what="a step that has failed", within=WORK_PATIENCE) or ""
    except AssertionError as late:
        raise AssertionError(f"{late}: {service.seen(order)}") from None


def _emptied(service: Service) -> str | None:
    places = [service.host_of(name) for name in ("a", "b")]
    empty = {"kvm01", "kvm02"} - set(places)
    return empty.pop() if empty else None


def _places(bed: Bed) -> dict[str, str]:
    """Return the host of each machine, without migrating ones."""
    found = {name: bed.where(name) for name in ("a", "b")}
    return {name: next(iter(where)) for name, where in found.items() if len(where) == 1}


def _work_done(service: Service, order: str) -> None:
    """Complete the work on the empty host, as a person would."""

    def begun() -> bool:
        return any(step["state"] == "running" for step in service.seen(order)["host_steps"])

    until(begun, what="work on the host itself", within=WORK_PATIENCE)
    service.post(f"/v1/orders/{order}/complete")
    service.wait_for_order(order)
