"""The rules over random histories with rollouts; the checker runs after every transaction."""

from tests.helpers.service.counts import seeds
from tests.histories.histories import play
from tests.histories.rollout_histories import ROLLOUT_SITUATIONS, RollingHistories
from tests.histories.situations import Reached


def test_no_history_with_rollouts_breaks_a_rule() -> None:
    play(RollingHistories, seeds(7, long=300), Reached(ROLLOUT_SITUATIONS))
