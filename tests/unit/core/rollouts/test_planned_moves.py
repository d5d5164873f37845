"""Questions to drivers about the moves of a plan, and what their answers mean for its hosts."""

from forewarn.core.basic_types import MachineName, Mobility, Work
from forewarn.core.model.host import Room
from forewarn.core.rollouts.evacuation import (
    MOST_TARGETS,
    EvacuationCheck,
    EvacuationInput,
    MoveAnswer,
    Obstacle,
    machines_to_evacuate,
    planned_moves,
    verdict,
    with_obstacles,
)
from tests.unit.core.model.test_rollout import NOW, host
from tests.unit.core.rollouts.test_evacuation import leaver, planned

ROOMY = Room()
WEB = MachineName("web-0")


def test_drivers_are_asked_about_hosts_outside_the_wave_with_room() -> None:
    plan = planned((1, 2), (3,))
    machines = [
        leaver("web-0", mobility=Mobility.LIVE),
        leaver("web-1", 3, mobility=Mobility.LIVE_ONLY, resources={"memory": 4.0}),
        leaver("pinned", mobility=Mobility.NONE),
        leaver("busy"),
    ]
    rooms = {host(number): ROOMY for number in range(1, 7)} | {host(1): Room(free={"memory": 1.0})}
    kept = EvacuationCheck(
        host=host(1), machines=3, obstacles=(Obstacle(machine=MachineName("busy"), reason="held"),)
    )
    around = EvacuationInput(machines=machines, rooms=rooms)
    first, second = planned_moves(machines_to_evacuate(plan, around, [kept], of={host(1), host(3)}), around)
    assert (first.machine, first.targets) == ("web-0", (host(3), host(4), host(5), host(6)))
    assert first.takers == 4
    assert first.works == (Work.FREEZE, Work.REDEPLOY)
    assert (second.machine, second.source) == ("web-1", host(3))
    assert second.targets == (host(2), host(4), host(5), host(6))
    assert second.works == (Work.FREEZE,)
    assert list(machines_to_evacuate(plan, around, [kept], of=())) == []


def test_of_many_hosts_the_first_reachable_ones_are_asked_about() -> None:
    away = {host(2): Room(unreachable_since=NOW)}
    rooms = {host(number): ROOMY for number in range(1, MOST_TARGETS + 10)} | away
    around = EvacuationInput(machines=[leaver("web-0")], rooms=rooms)
    (move,) = planned_moves(machines_to_evacuate(planned((1,)), around, (), of={host(1)}), around)
    assert (len(move.targets), move.takers) == (MOST_TARGETS, MOST_TARGETS + 7)
    assert host(2) not in move.targets


def test_machines_with_equal_requirements_are_checked_against_the_same_hosts() -> None:
    rooms = {host(number): ROOMY for number in (1, 2, 3)}
    around = EvacuationInput(machines=[leaver("web-0"), leaver("web-1")], rooms=rooms)
    first, second = planned_moves(machines_to_evacuate(planned((1,)), around, (), of={host(1)}), around)
    assert first.targets == second.targets == (host(2), host(3))


def test_one_host_that_agrees_is_enough() -> None:
    refused, unknown = MoveAnswer(refused="no"), MoveAnswer(unknown="away")
    assert verdict({host(1): refused, host(2): unknown, host(3): MoveAnswer()}, takers=9) == MoveAnswer()
    assert verdict({host(1): refused, host(2): unknown}, takers=2) == unknown
    assert verdict({host(1): refused}, takers=1) == MoveAnswer(refused="host-1 cannot take it, no")


def test_refusals_of_some_hosts_do_not_speak_for_all() -> None:
    refused = {host(number): MoveAnswer(refused="no") for number in range(1, 6)}
    some = "; ".join(f"host-{number} cannot take it, no" for number in (1, 2, 3))
    assert verdict(refused, takers=6) == MoveAnswer(unknown=f"5 of 6 hosts were asked: {some} and 2 more")
    assert verdict(refused, takers=5) == MoveAnswer(refused=f"{some} and 2 more")


def test_refusals_of_drivers_are_obstacles() -> None:
    ones = (EvacuationCheck(host=host(1), machines=1), EvacuationCheck(host=host(2), machines=1))
    first, second = with_obstacles(ones, {(host(1), WEB): "disk vda"})
    assert first.obstacles == (Obstacle(machine=WEB, reason="disk vda"),)
    assert second.possible
