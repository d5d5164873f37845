"""The filters of handlers and the approval policy."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.agent.verdicts import (
    ApprovalDecider,
    ApprovePolicy,
    Approver,
    HandlerFilter,
    Later,
    Now,
    Skip,
    Verdict,
)
from forewarn.core.basic_types import EventStatus, EventType, Source
from forewarn.sdk.documents import Event


def event(*resources: str, source: Source | str = Source.PLATFORM, started: bool = False) -> Event:
    return Event(
        id="A",
        type=EventType.REBOOT,
        status=EventStatus.STARTED if started else EventStatus.SCHEDULED,
        resources=resources or ("web-0",),
        not_before=datetime(2026, 1, 5, tzinfo=UTC),
        source=source,
    )


def decide(
    event_: Event,
    *,
    approve: ApprovePolicy = ApprovePolicy.WHEN_READY,
    approver: Approver = Approver.SELF,
    machine: str = "web-0",
    ready_for: float = 0.0,
) -> Verdict:
    return ApprovalDecider(approve=approve, approver=approver, machine=machine).decide(
        event_, ready_for=ready_for
    )


def test_an_event_of_this_machine_alone_is_approved() -> None:
    assert decide(event("WEB-0")) == Now()


def test_a_recommendation_is_not_approved() -> None:
    hint = replace(event(), type=EventType.SPOT_REBALANCE_RECOMMENDATION)
    assert decide(hint) == Skip("a SpotRebalanceRecommendation is only a recommendation")


def test_never_approves_nothing() -> None:
    assert isinstance(decide(event(), approve=ApprovePolicy.NEVER), Skip)


def test_user_events_have_the_source_user() -> None:
    assert decide(event(source=Source.USER), approve=ApprovePolicy.USER_EVENTS) == Now()
    assert decide(event(), approve=ApprovePolicy.USER_EVENTS) == Skip("its source is Platform, not User")
    assert decide(event(source=""), approve=ApprovePolicy.USER_EVENTS) == Skip(
        "its source is unknown, not User"
    )


def test_a_started_event_needs_no_approval() -> None:
    assert decide(event(started=True)) == Skip("it is Started")


def test_self_approves_only_for_this_machine_alone() -> None:
    assert decide(event("web-0", "web-3")) == Skip("it names 2 machines, and the approver is self")


def test_any_approves_at_once() -> None:
    assert decide(event("web-0", "web-3"), approver=Approver.ANY, machine="web-3") == Now()


@pytest.mark.parametrize(
    ("machine", "ready_for", "decision"),
    [
        ("a", 0.0, Now()),
        ("b", 0.0, Later(30.0, "a is first")),
        ("b", 29.0, Later(1.0, "a is first")),
        ("b", 30.0, Now()),
        ("C", 30.0, Later(30.0, "a is first")),
        ("C", 60.0, Now()),
        ("d", 90.0, Skip("it does not name this machine")),
    ],
)
def test_the_first_machine_approves_and_each_next_after_thirty_seconds(
    machine: str, ready_for: float, decision: Verdict
) -> None:
    said = decide(event("a", "b", "c"), approver=Approver.FIRST, machine=machine, ready_for=ready_for)
    assert said == decision


# Filters


def freeze(duration: float | None = None, source: Source | str = Source.PLATFORM) -> Event:
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
        (HandlerFilter(), freeze(), 10.0, Now()),
        (HandlerFilter(types=(EventType.FREEZE,)), freeze(), 10.0, Now()),
        (HandlerFilter(types=(EventType.REBOOT,)), freeze(), 10.0, Skip("its types do not include Freeze")),
        (HandlerFilter(sources=(Source.USER,)), freeze(), 10.0, Skip("its sources do not include Platform")),
        (
            HandlerFilter(sources=(Source.USER,)),
            freeze(source=""),
            10.0,
            Skip("its sources do not include unknown"),
        ),
        (
            HandlerFilter(min_duration=10),
            freeze(9),
            10.0,
            Skip("the event interrupts for 9 s, less than 10 s"),
        ),
        (HandlerFilter(min_duration=10), freeze(10), 10.0, Now()),
        (HandlerFilter(min_duration=10), freeze(None), 10.0, Now()),  # an unknown duration may be long
        (
            HandlerFilter(max_duration=10),
            freeze(None),
            10.0,
            Skip("the event interrupts for an unknown time, which may be more than 10 s"),
        ),
        (HandlerFilter(max_duration=10), freeze(9), 10.0, Now()),
        (HandlerFilter(min_seconds_left=60), freeze(), 59.0, Skip("59 s are left, and it needs 60 s")),
        (HandlerFilter(min_seconds_left=60), freeze(), None, Now()),
        (HandlerFilter(max_seconds_left=60), freeze(), 90.0, Later(30.0)),
        (HandlerFilter(max_seconds_left=60), freeze(), 60.0, Now()),
        (HandlerFilter(max_seconds_left=60), freeze(), None, Now()),
    ],
)
def test_a_filter_decides_whether_and_when(
    when: HandlerFilter, of: Event, left: float | None, verdict: Verdict
) -> None:
    assert when.verdict(of, left) == verdict


def test_recommendations_are_for_handlers_that_list_them() -> None:
    hint = replace(freeze(), type=EventType.SPOT_REBALANCE_RECOMMENDATION)
    assert isinstance(HandlerFilter().verdict(hint, 10.0), Skip)
    assert isinstance(HandlerFilter(types=(EventType.PREEMPT,)).verdict(hint, 10.0), Skip)
    assert HandlerFilter(types=(EventType.SPOT_REBALANCE_RECOMMENDATION,)).verdict(hint, 10.0) == Now()


def test_a_filter_is_described() -> None:
    when = HandlerFilter(
        sources=(Source.USER,), min_duration=10, max_duration=60, min_seconds_left=5, max_seconds_left=600
    )
    assert when.in_words() == [
        "if its source is User",
        "if it interrupts for at least 10 s or an unknown time",
        "if it interrupts for at most 60 s",
        "if at least 5 s are left",
        "once 600 s are left",
    ]
