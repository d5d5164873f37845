"""For which events a handler is meant, and when its time comes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.agent.setup.event_filter import EventFilter
from forewarn.agent.verdict import Later, Now, Skip, Verdict
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
        (EventFilter(), event(), 10.0, Now()),
        (EventFilter(types=(EventType.FREEZE,)), event(), 10.0, Now()),
        (EventFilter(types=(EventType.REBOOT,)), event(), 10.0, Skip("not for Freeze")),
        (EventFilter(sources=(Source.USER,)), event(), 10.0, Skip("not for events of source Platform")),
        (
            EventFilter(sources=(Source.USER,)),
            event(source=""),
            10.0,
            Skip("not for events of source unknown"),
        ),
        (EventFilter(min_duration=10), event(9), 10.0, Skip("it interrupts for 9 s, less than 10 s")),
        (EventFilter(min_duration=10), event(10), 10.0, Now()),
        (EventFilter(min_duration=10), event(None), 10.0, Now()),  # unknown may be long
        (
            EventFilter(max_duration=10),
            event(None),
            10.0,
            Skip("it interrupts for an unknown time, which may be more than 10 s"),
        ),
        (EventFilter(max_duration=10), event(9), 10.0, Now()),
        (EventFilter(min_seconds_left=60), event(), 59.0, Skip("59 s are left, it wants 60")),
        (EventFilter(min_seconds_left=60), event(), None, Now()),
        (EventFilter(max_seconds_left=60), event(), 90.0, Later(30.0)),
        (EventFilter(max_seconds_left=60), event(), 60.0, Now()),
        (EventFilter(max_seconds_left=60), event(), None, Now()),
    ],
)
def test_a_filter_says_whether_and_when(
    when: EventFilter, of: Event, left: float | None, verdict: Verdict
) -> None:
    assert when.verdict(of, left) == verdict


def test_what_only_recommends_something_is_for_handlers_that_name_it() -> None:
    hint = replace(event(), type=EventType.SPOT_REBALANCE_RECOMMENDATION)
    assert isinstance(EventFilter().verdict(hint, 10.0), Skip)
    assert isinstance(EventFilter(types=(EventType.PREEMPT,)).verdict(hint, 10.0), Skip)
    assert EventFilter(types=(EventType.SPOT_REBALANCE_RECOMMENDATION,)).verdict(hint, 10.0) == Now()


def test_a_filter_can_be_told_in_words() -> None:
    when = EventFilter(
        sources=(Source.USER,), min_duration=10, max_duration=60, min_seconds_left=5, max_seconds_left=600
    )
    assert when.in_words() == [
        "if its source is User",
        "if it interrupts for at least 10 s, or nobody knows how long",
        "if it interrupts for at most 60 s",
        "if at least 5 s are left",
        "once 600 s are left",
    ]
