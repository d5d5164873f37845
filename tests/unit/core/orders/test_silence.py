"""The silence of external programs across a start of the server."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.model.clock_slew import Absence
from forewarn.core.orders.reports import Presence, silence_before_start

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
LIMIT = 10 * MINUTE


def counted(*, heard: timedelta | None, away: timedelta, absence: timedelta | None = None) -> timedelta:
    """Return the silence that counts if a server ran until noon. Spans count back from noon, but `away`."""
    gone = () if absence is None else (Absence(since=NOON - 60 * MINUTE, until=NOON - absence),)
    presence = Presence(until=NOON, absences=gone)
    return silence_before_start(LIMIT, None if heard is None else NOON - heard, presence, now=NOON + away)


@pytest.mark.parametrize(
    ("heard", "counts"),
    [
        (timedelta(), timedelta()),
        (4 * MINUTE, 4 * MINUTE),
        (9 * MINUTE, 9 * MINUTE),
        (9 * MINUTE + SECOND, 9 * MINUTE),  # a minute is always left
        (-2 * SECOND, timedelta()),  # the server saves its presence only from time to time
    ],
)
def test_after_a_brief_restart_silence_keeps_counting(heard: timedelta, counts: timedelta) -> None:
    assert counted(heard=heard, away=30 * SECOND) == counts


@pytest.mark.parametrize("away", [61 * SECOND, timedelta(days=1), -SECOND])
def test_after_an_outage_or_a_clock_change_silence_counts_from_zero(away: timedelta) -> None:
    assert counted(heard=9 * MINUTE, away=away) == timedelta()


def test_silence_counts_from_the_end_of_the_last_absence() -> None:
    assert counted(heard=9 * MINUTE, away=SECOND, absence=2 * MINUTE) == 2 * MINUTE
    assert counted(heard=2 * MINUTE, away=SECOND, absence=9 * MINUTE) == 2 * MINUTE


def test_a_brief_absence_does_not_reset_silence() -> None:
    brief = Absence(since=NOON - 2 * MINUTE, until=NOON - 90 * SECOND)
    presence = Presence(until=NOON, absences=(brief,))
    assert silence_before_start(LIMIT, NOON - 5 * MINUTE, presence, now=NOON + SECOND) == 5 * MINUTE


def test_unknown_times_do_not_count_as_silence() -> None:
    assert counted(heard=None, away=SECOND) == timedelta()
    assert silence_before_start(LIMIT, NOON, None, now=NOON + SECOND) == timedelta()


def test_a_limit_under_a_minute_resets_silence() -> None:
    presence = Presence(until=NOON)
    assert silence_before_start(30 * SECOND, NOON - 20 * SECOND, presence, now=NOON + SECOND) == timedelta()
