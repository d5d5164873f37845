"""The kind of time that a store lives in."""

from datetime import timedelta

import pytest

from forewarn.core.model.service_time import TOLERANCE, TimeKind, can_be_the_systems, kind_of

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
def test_a_store_is_what_it_says_and_an_older_one_was_turned_if_it_is_ahead(
    saved: TimeKind | None, ahead: timedelta, kind: TimeKind
) -> None:
    assert kind_of(saved, ahead=ahead) is kind


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
def test_turned_time_that_is_ahead_cannot_become_the_systems(
    kind: TimeKind, ahead: timedelta, can: bool
) -> None:
    assert can_be_the_systems(kind, ahead=ahead) is can
