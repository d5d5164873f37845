"""Hosts of a plan that can be evacuated, and the obstacles of the others."""

from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import DEFAULT_PROJECT, MachineName, Mobility, ServiceMode, Work
from forewarn.core.model.constraints import Hold
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.host import Host, Room
from forewarn.core.model.rollout import Rollout, RolloutTerms, Wave
from forewarn.core.rollouts.evacuation import (
    CANNOT_LEAVE,
    EvacuationCheck,
    EvacuationInput,
    LeavingMachine,
    find_obstacles,
)
from tests.unit.core.model.test_rollout import NOW, host, over, survey

ROOMY = Room()


def leaver(name: str, number: int = 1, **more: Any) -> LeavingMachine:
    return LeavingMachine(name=MachineName(name), host=host(number), project=DEFAULT_PROJECT, **more)


def planned(*waves: tuple[int, ...], **terms: Any) -> Rollout:
    hosts = tuple(Wave(hosts=tuple(map(host, wave))) for wave in waves)
    plan = over(survey(*(Footprint() for wave in waves for _ in wave)))
    return replace(plan, work=Work.HOST, waves=hosts, terms=RolloutTerms(**terms))


def reasons(
    plan: Rollout, *machines: LeavingMachine, holds: tuple[Hold, ...] = (), **rooms: Room
) -> list[str]:
    """Return the obstacles of machines; `host_N` is the room of a host."""
    found = {host(int(name.removeprefix("host_"))): room for name, room in rooms.items()}
    ground = replace(survey(*(Footprint() for _ in plan.hosts)), holds=holds)
    hosts = find_obstacles(plan, ground, EvacuationInput(machines=machines, rooms=found))
    return [f"{each.machine}: {each.reason}" for one in hosts for each in one.obstacles]


def test_a_host_whose_machines_all_find_room_can_be_evacuated() -> None:
    plan = planned((1,), (2,))
    ground = survey(Footprint(), Footprint())
    around = EvacuationInput(machines=[leaver("web-0")], rooms={host(1): ROOMY, host(2): ROOMY})
    assert find_obstacles(plan, ground, around) == (
        EvacuationCheck(host=host(1), machines=1),
        EvacuationCheck(host=host(2), machines=0),
    )
    assert find_obstacles(plan, ground, around)[0].possible


def test_machines_that_cannot_leave_are_obstacles() -> None:
    pinned = leaver("pinned", mobility=Mobility.NONE)
    assert reasons(planned((1,)), pinned, host_2=ROOMY) == [f"pinned: {CANNOT_LEAVE}"]
    plan, metal = planned((1,)), Host(name=host(1), bare_metal=True)
    ground = replace(survey(Footprint()), hosts={host(1): metal})
    (found,) = find_obstacles(plan, ground, EvacuationInput(machines=[leaver("gpu")], rooms={host(2): ROOMY}))
    assert not found.possible


def test_unreachable_hosts_are_no_targets_and_are_named() -> None:
    plan, away = planned((1,)), Room(unreachable_since=NOW, labels={"disk": "ssd"})
    machine, choosy = leaver("web-0"), leaver("web-1", labels={"disk": "nvme"})
    said = "web-0: finds no host with room for it; host-2 cannot be reached since 2026-01-05T12:00:00Z"
    assert reasons(plan, machine, host_2=away) == [said]
    assert reasons(plan, machine, host_2=away, host_3=ROOMY) == []
    assert reasons(plan, choosy, host_2=away) == ["web-1: finds no host with room for it"]


def test_hosts_of_one_wave_are_no_targets_for_each_other() -> None:
    machine = leaver("web-0")
    assert reasons(planned((1, 2)), machine, host_1=ROOMY, host_2=ROOMY) == [
        "web-0: finds no host with room for it"
    ]
    assert reasons(planned((1,), (2,)), machine, host_1=ROOMY, host_2=ROOMY) == []


def test_capacity_is_used_once() -> None:
    machines = [leaver(f"big-{number}", resources={"memory": 6}) for number in range(4)]
    room = Room(free={"memory": 10})
    lacking = "finds no host with room for it: most lack 6 memory"
    assert reasons(planned((1,)), *machines, host_2=room, host_3=room) == [
        f"big-2: {lacking}",
        f"big-3: {lacking}",
    ]


def test_labels_are_required() -> None:
    wants = leaver("gpu-0", labels={"zone": "b"})
    assert reasons(planned((1,)), wants, host_2=ROOMY) == [
        "gpu-0: finds no host with room for it: most lack zone=b"
    ]
    assert reasons(planned((1,)), wants, host_2=Room(labels={"zone": "b"})) == []


def test_orders_and_holds_on_machines_are_obstacles() -> None:
    busy = leaver("busy", ordered="has order 1 (restart), which is announced")
    hold = Hold(id="H", project=None, host=host(1), by="ops", reason="audit", at=NOW)
    assert reasons(planned((1,)), busy, leaver("web-0"), host_2=ROOMY) == [f"busy: {busy.ordered}"]
    (said,) = reasons(planned((1,)), leaver("web-0"), holds=(hold,), host_2=ROOMY)
    assert "held by ops" in said
    assert reasons(planned((1,), (2,)), leaver("web-0", 2), holds=(hold,), host_3=ROOMY) == []


def test_in_place_there_are_no_obstacles() -> None:
    ground = survey(Footprint())
    assert find_obstacles(planned((1,), mode=ServiceMode.IN_PLACE), ground, EvacuationInput()) == ()
