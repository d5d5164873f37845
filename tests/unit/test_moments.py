"""How long something lasts, in words."""

import pytest

from forewarn.core.moments import format_span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (60, "1 m"),
        (90, "1 m 30 s"),
        (5400, "1 h 30 m"),
        (86400, "1 d"),
        (7 * 86400, "7 d"),
        (86401, "1 d 1 s"),
        (-1, "-1 s"),
        (1e300, "1e+300 s"),
        (float("inf"), "inf s"),
    ],
)
def test_a_time_is_said_in_its_units(seconds: float, words: str) -> None:
    assert format_span(seconds) == words
