"""The rules over random histories with a driver that is slow, hangs, lies, dies and answers late."""

from tests.helpers.service.counts import LONG, seeds
from tests.histories.histories import play
from tests.histories.situations import Reached
from tests.histories.unruly_histories import UNRULY_SITUATIONS, UnrulyHistories


def test_no_step_is_begun_twice_or_forgotten_and_no_caller_waits_for_a_driver() -> None:
    # Few histories do not cover all situations.
    play(UnrulyHistories, seeds(2, long=500), Reached(UNRULY_SITUATIONS if LONG else {}))
