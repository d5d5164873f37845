"""The expected time of moves, from past moves."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import Mobility
from forewarn.core.model.footprint import LEAST, MOST, NO_MOVES, REMEMBERED, Footprint, MovePace
from tests.unit.core.model.test_rollout import survey
from tests.unit.core.rollouts.test_candidates import share, spans
from tests.unit.slices import MINUTE, Fleet, machine

HOUR = 3600.0


@pytest.mark.parametrize(
    ("pace", "factor"),
    [
        (NO_MOVES, 1.0),
        (MovePace(expected=240, taken=240), 1.0),
        (MovePace(expected=9 * HOUR, taken=18 * HOUR), pytest.approx(2, abs=0.05)),
        (MovePace(expected=240, taken=480), pytest.approx(1.3, abs=0.05)),  # a few moves have little weight
        (MovePace(expected=9 * HOUR, taken=0), LEAST),
        (MovePace(expected=HOUR, taken=100 * HOUR), MOST),
    ],
)
def test_past_moves_scale_the_expected_time_within_limits(pace: MovePace, factor: float) -> None:
    assert pace.factor == factor


def test_old_moves_lose_weight() -> None:
    slow = MovePace(expected=REMEMBERED, taken=2 * REMEMBERED)
    assert slow.plus(MovePace(expected=2, taken=4)) == MovePace(
        expected=REMEMBERED / 2 + 1, taken=REMEMBERED + 2
    )


def test_only_real_moves_are_counted() -> None:
    for driver, counted in (("libvirt", 1), ("simulated", 0), ("external", 0)):
        fleet = Fleet(machine("a-0", resources={"memory": 60}), hosts=("host-2",))
        order = fleet.service(driver=driver)
        fleet.pass_(15 * MINUTE)
        fleet.turn(10 * MINUTE)
        fleet.finish(order.id)
        moves = fleet.draft.changes().moves
        assert moves == MovePace(expected=240 * counted, taken=600 * counted)


def test_work_that_moves_no_machine_is_not_counted() -> None:
    fleet = Fleet(machine("a-0"))
    order = fleet.maintain(driver="libvirt")
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    assert fleet.draft.changes().moves == NO_MOVES


def test_forecasts_use_the_pace_of_moves() -> None:
    slow = MovePace(expected=9 * HOUR, taken=90 * HOUR)
    ground = survey(Footprint.of([share(Mobility.COLD)]))
    usual, slower = spans(ground)[0][1], spans(replace(ground, pace=slow))[0][1]
    assert slower == MOST * usual
    assert work_durations.move_time(None, slow) == MOST * work_durations.MOVE
    assert work_durations.moves_time([None, None], 1, slow) == 2 * MOST * work_durations.MOVE


def test_slots_use_the_pace_of_moves() -> None:
    def last(pace: MovePace) -> timedelta:
        fleet = Fleet(*(machine(f"m{number}-0") for number in range(4)), hosts=("host-2",))
        fleet.draft.pace = pace
        fleet.service()
        return max(event.not_before for event in fleet.events()) - fleet.now

    usual, slower = last(NO_MOVES), last(MovePace(expected=9 * HOUR, taken=90 * HOUR))
    assert slower - 10 * MINUTE == MOST * (usual - 10 * MINUTE)
