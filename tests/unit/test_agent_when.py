"""For which events a handler is meant, and when its time comes."""

from datetime import timedelta

import pytest

from forewarn.agent.setup.event_filter import Later, Now, Skip, Verdict, When
from forewarn.core.words import EventStatus, EventType, Source
from forewarn.sdk.documents import Event


def event(duration: float | None = None, source: Source | str = Source.PLATFORM) -> Event:
    return Event(
        id="A",
        type=EventType.FREEZE,
        status=EventStatus.SCHEDULED,
        resources=("web-0",),
        source=source,
        duration=None if duration is None else timedelta(seconds=duration),
    )


@pytest.mark.parametrize(
    ("when", "of", "left", "verdict"),
    [
        (When(), event(), 10.0, Now()),
        (When(types=(EventType.FREEZE,)), event(), 10.0, Now()),
        (When(types=(EventType.REBOOT,)), event(), 10.0, Skip("not for Freeze")),
        (When(sources=(Source.USER,)), event(), 10.0, Skip("not for events of source Platform")),
        (When(sources=(Source.USER,)), event(source=""), 10.0, Skip("not for events of source unknown")),
        (When(min_duration=10), event(9), 10.0, Skip("it interrupts for 9 s, less than 10 s")),
        (When(min_duration=10), event(10), 10.0, Now()),
        (When(min_duration=10), event(None), 10.0, Now()),  # unknown may be long
        (
            When(max_duration=10),
            event(None),
            10.0,
            Skip("it interrupts for an unknown time, which may be more than 10 s"),
        ),
        (When(max_duration=10), event(9), 10.0, Now()),
        (When(min_seconds_left=60), event(), 59.0, Skip("59 s are left, it wants 60")),
        (When(min_seconds_left=60), event(), None, Now()),
        (When(max_seconds_left=60), event(), 90.0, Later(30.0)),
        (When(max_seconds_left=60), event(), 60.0, Now()),
        (When(max_seconds_left=60), event(), None, Now()),
    ],
)
def test_a_filter_says_whether_and_when(when: When, of: Event, left: float | None, verdict: Verdict) -> None:
    assert when.verdict(of, left) == verdict


def test_a_filter_can_be_told_in_words() -> None:
    when = When(
        sources=(Source.USER,), min_duration=10, max_duration=60, min_seconds_left=5, max_seconds_left=600
    )
    assert when.words() == [
        "if its source is User",
        "if it interrupts for at least 10 s, or nobody knows how long",
        "if it interrupts for at most 60 s",
        "if at least 5 s are left",
        "once 600 s are left",
    ]
