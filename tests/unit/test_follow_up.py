"""Those who read wait for what follows from what they were answered, and for nothing else."""

import threading

from forewarn.server.threads.jobs import FollowUp

FOREVER = 1e6


def reading(follow_up: FollowUp) -> threading.Thread:
    """Have somebody wait to read, on a thread of theirs."""
    reader = threading.Thread(target=follow_up.wait, daemon=True)
    reader.start()
    return reader


def test_where_nothing_may_follow_a_reader_does_not_wait() -> None:
    FollowUp(longest_wait=FOREVER).wait()


def test_a_reader_waits_for_the_next_look() -> None:
    follow_up = FollowUp(longest_wait=FOREVER)
    follow_up.owe()
    reader = reading(follow_up)
    reader.join(0.05)
    assert reader.is_alive()
    follow_up.looked()
    reader.join(60)
    assert not reader.is_alive()


def test_after_the_look_nobody_waits() -> None:
    follow_up = FollowUp(longest_wait=FOREVER)
    follow_up.owe()
    follow_up.looked()
    follow_up.wait()


def test_a_look_that_does_not_come_is_not_waited_for() -> None:
    follow_up = FollowUp(longest_wait=0.01)
    follow_up.owe()
    follow_up.wait()
