"""The clock of a store, and the slew of service time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.model.clock_slew import (
    LARGEST_SLEW,
    SLEWING,
    TOLERANCE,
    Slew,
    TimeKind,
    can_use_system_clock,
    clock_kind,
    pace,
)

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
SYSTEM, TURNED = TimeKind.SYSTEM, TimeKind.TURNED


@pytest.mark.parametrize(
    ("saved", "ahead", "kind"),
    [
        (None, DAY, TURNED),
        (None, TOLERANCE + SECOND, TURNED),
        (None, TOLERANCE, SYSTEM),
        (None, -DAY, SYSTEM),
        (SYSTEM, DAY, SYSTEM),
        (TURNED, -DAY, TURNED),
    ],
)
def test_a_store_without_a_clock_kind_was_advanced_if_it_is_ahead(
    saved: TimeKind | None, ahead: timedelta, kind: TimeKind
) -> None:
    assert clock_kind(saved, ahead=ahead) is kind


@pytest.mark.parametrize(
    ("kind", "ahead", "can"),
    [
        (TURNED, DAY, False),
        (TURNED, TOLERANCE + SECOND, False),
        (TURNED, TOLERANCE, True),
        (TURNED, -DAY, True),
        (SYSTEM, DAY, True),
    ],
)
def test_a_store_with_an_advanced_clock_cannot_switch_to_the_system_clock(
    kind: TimeKind, ahead: timedelta, can: bool
) -> None:
    assert can_use_system_clock(kind, ahead=ahead) is can


NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SLEW = Slew(at=NOON + 3 * HOUR, system=NOON)


@pytest.mark.parametrize(
    ("system", "service"),
    [
        (-HOUR, 2 * HOUR),  # before that, both clocks run at the same speed
        (0 * HOUR, 3 * HOUR),
        (2 * HOUR, 4 * HOUR),
        (6 * HOUR, 6 * HOUR),  # they meet
        (9 * HOUR, 9 * HOUR),
    ],
)
def test_service_time_that_is_ahead_runs_at_half_speed_until_it_meets_the_system_clock(
    system: timedelta, service: timedelta
) -> None:
    assert SLEW.to_service(NOON + system) == NOON + service
    assert SLEW.to_system(NOON + service) == NOON + system


def test_service_time_that_is_too_far_ahead_runs_at_full_speed() -> None:
    far = Slew(at=NOON + LARGEST_SLEW + SECOND, system=NOON)
    assert far.to_service(NOON + DAY) == far.at + DAY
    assert far.to_system(far.at + 100 * DAY) == NOON + 100 * DAY


@pytest.mark.parametrize(
    ("ahead", "speed"),
    [(-SECOND, 1), (0 * SECOND, 1), (SECOND, SLEWING), (LARGEST_SLEW, SLEWING), (LARGEST_SLEW + SECOND, 1)],
)
def test_service_time_slows_down_while_it_is_ahead_but_not_for_weeks(ahead: timedelta, speed: float) -> None:
    assert pace(ahead) == speed


@given(ahead=st.integers(0, 10**13), moments=st.lists(st.integers(-(10**13), 10**13), min_size=2, max_size=2))
def test_converting_between_the_clocks_is_monotonic_and_reversible(ahead: int, moments: list[int]) -> None:
    slew = Slew(at=NOON + timedelta(microseconds=ahead), system=NOON)
    first, last = (NOON + timedelta(microseconds=each) for each in sorted(moments))
    assert slew.to_service(first) <= slew.to_service(last)
    assert slew.to_system(first) <= slew.to_system(last)
    assert slew.to_service(slew.to_system(last)) == last
    assert slew.to_system(last) <= last <= slew.to_service(last)
