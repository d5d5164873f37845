"""The rules of the service over random histories."""

from tests.helpers.service.counts import seeds
from tests.histories.failing_histories import FAILING_SITUATIONS, FailingHistories
from tests.histories.histories import Histories, play
from tests.histories.moving_histories import MOVING_SITUATIONS, MovingHistories
from tests.histories.progress_histories import PROGRESS_SITUATIONS, ProgressHistories
from tests.histories.reach_histories import REACH_SITUATIONS, ReachHistories
from tests.histories.service_histories import SERVICE_SITUATIONS, ServiceHistories
from tests.histories.situations import SITUATIONS, Reached


def test_no_history_breaks_a_rule_and_all_situations_are_met() -> None:
    play(Histories, seeds(15, long=300), Reached(SITUATIONS))


def test_no_history_of_work_on_hosts_breaks_a_rule() -> None:
    play(ServiceHistories, seeds(6, long=200), Reached(SERVICE_SITUATIONS))


def test_no_history_in_which_hosts_fail_often_breaks_a_rule() -> None:
    play(FailingHistories, seeds(8, long=300), Reached(FAILING_SITUATIONS))


def test_no_history_in_which_single_machines_move_breaks_a_rule() -> None:
    play(MovingHistories, seeds(3, long=200), Reached(MOVING_SITUATIONS))


def test_announced_events_start_once_nothing_blocks_them() -> None:
    play(ProgressHistories, seeds(4, long=300), Reached(PROGRESS_SITUATIONS))


def test_announced_events_start_once_all_hosts_are_reachable_again() -> None:
    play(ReachHistories, seeds(6, long=200), Reached(REACH_SITUATIONS))
