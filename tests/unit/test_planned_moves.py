"""Which moves of a plan drivers are asked about, and what their answers say of its hosts."""

from forewarn.core.model.emptying import Emptying, Obstacle, Surroundings
from forewarn.core.model.room import Room
from forewarn.core.rollouts.planned_moves import (
    MOST_TARGETS,
    MoveAnswer,
    planned_moves,
    verdict,
    with_obstacles,
)
from forewarn.core.words import MachineName, Mobility, Work
from tests.unit.test_emptying import leaver, planned
from tests.unit.test_rollout import host

ROOMY = Room()
WEB = MachineName("web-0")


def test_machines_are_asked_about_on_hosts_outside_their_wave_that_have_room() -> None:
    plan = planned((1, 2), (3,))
    machines = [
        leaver("web-0", mobility=Mobility.LIVE),
        leaver("web-1", 3, mobility=Mobility.LIVE_ONLY, resources={"memory": 4.0}),
        leaver("pinned", mobility=Mobility.NONE),
        leaver("busy"),
    ]
    rooms = {host(number): ROOMY for number in range(1, 7)} | {host(1): Room(free={"memory": 1.0})}
    kept = Emptying(
        host=host(1), machines=3, obstacles=(Obstacle(machine=MachineName("busy"), reason="held"),)
    )
    around = Surroundings(machines=machines, rooms=rooms)
    first, second = planned_moves(plan, around, [kept], of={host(1), host(3)})
    assert (first.machine, first.targets) == ("web-0", (host(3), host(4), host(5)))
    assert len(first.targets) == MOST_TARGETS
    assert first.works == (Work.FREEZE, Work.REDEPLOY)
    assert (second.machine, second.source, second.targets) == ("web-1", host(3), (host(2), host(4), host(5)))
    assert second.works == (Work.FREEZE,)
    assert list(planned_moves(plan, around, [kept], of=())) == []


def test_one_host_that_takes_a_machine_is_enough() -> None:
    refused, unknown = MoveAnswer(refused="no"), MoveAnswer(unknown="away")
    assert verdict({host(1): refused, host(2): unknown, host(3): MoveAnswer()}) == MoveAnswer()
    assert verdict({host(1): refused, host(2): unknown}) == unknown
    assert verdict({host(1): refused}) == MoveAnswer(refused="host-1 cannot take it, no")


def test_what_drivers_say_is_in_the_way_of_the_host() -> None:
    ones = (Emptying(host=host(1), machines=1), Emptying(host=host(2), machines=1))
    first, second = with_obstacles(ones, {(host(1), WEB): "disk vda"})
    assert first.obstacles == (Obstacle(machine=WEB, reason="disk vda"),)
    assert second.possible
