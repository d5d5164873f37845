"""The rules over random histories in which the driver is slow, hangs, lies, dies and answers late."""

from tests.helpers.service.counts import LONG, seeds
from tests.histories.histories import play
from tests.histories.situations import Reached
from tests.histories.unruly_histories import UNRULY_SITUATIONS, UnrulyHistories


def test_no_driver_has_a_step_begun_twice_forgotten_or_waited_for() -> None:
    # Few histories do not come to everything.
    play(UnrulyHistories, seeds(2, long=500), Reached(UNRULY_SITUATIONS if LONG else {}))
