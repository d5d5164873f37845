"""Notice that is kept, late or never received, and the impact of work."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.basic_types import (
    Action,
    ApprovedBy,
    EventId,
    EventStatus,
    EventType,
    GroupName,
    MachineId,
    MachineName,
    OrderId,
    Source,
    StageState,
    StepState,
    Work,
)
from forewarn.core.guests.notice import MachineNotice, by_machine, impact, summary, summary_of, total
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.event import Approval, Event, NoticeSummary, Resource
from forewarn.core.model.order import Order, Stage, Step

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def event(
    *names: str,
    notice: timedelta = 15 * MINUTE,
    started: timedelta | None = 15 * MINUTE,
    approved: bool = False,
) -> Event:
    """Make an event that is announced at noon."""
    return Event(
        id=EventId("E"),
        number=1,
        order=OrderId("O"),
        stage=0,
        group=GroupName("web"),
        update_domain=0,
        type=EventType.REBOOT,
        status=EventStatus.SCHEDULED if started is None else EventStatus.STARTED,
        source=Source.PLATFORM,
        description="",
        duration_seconds=-1,
        resources=tuple(
            Resource(machine=MachineId(f"id of {name}"), name=MachineName(name)) for name in names or ("a",)
        ),
        announced_at=NOON,
        not_before=NOON + notice,
        started_at=None if started is None else NOON + started,
        approvals=(Approval(by="a", kind=ApprovedBy.GUEST, at=NOON),) if approved else (),
    )


def one(shown: Event, after: timedelta | None, *absences: Absence) -> MachineNotice:
    """Return the notice of the only machine; the time when it received the event is counted from noon."""
    sent = {} if after is None else {MachineId("id of a"): NOON + after}
    (only,) = by_machine(shown, sent, absences=absences)
    return only


def away(since: timedelta, until: timedelta) -> Absence:
    """Make an absence of the server; both times are counted from noon."""
    return Absence(since=NOON + since, until=NOON + until)


@pytest.mark.parametrize("after", [timedelta(), 10 * MINUTE, 15 * MINUTE, 16 * MINUTE])
def test_a_machine_that_polls_late_did_not_get_late_notice(after: timedelta) -> None:
    got = one(event(), after)
    assert (got.notice, got.late, got.never) == (max(15 * MINUTE - after, timedelta()), False, False)


@pytest.mark.parametrize(
    ("notice", "absence", "late"),
    [
        (15 * MINUTE, away(timedelta(), 30 * SECOND), False),
        (15 * MINUTE, away(timedelta(), 31 * SECOND), True),
        (15 * MINUTE, away(-5 * MINUTE, 31 * SECOND), True),
        (15 * MINUTE, away(-5 * MINUTE, timedelta()), False),
        (15 * MINUTE, away(5 * MINUTE, 6 * MINUTE), True),
        (15 * MINUTE, away(14 * MINUTE, 20 * MINUTE), True),
        (15 * MINUTE, away(15 * MINUTE, 20 * MINUTE), False),
        (30 * SECOND, away(timedelta(), 15 * SECOND), False),  # half of a short notice may be lost
        (30 * SECOND, away(timedelta(), 16 * SECOND), True),
        (timedelta(days=7), away(timedelta(), timedelta(days=6)), False),  # one hour of notice is enough
        (timedelta(days=7), away(timedelta(), timedelta(days=7) - 59 * MINUTE), True),
    ],
)
def test_notice_is_late_if_the_server_was_away_longer_than_the_tolerance(
    notice: timedelta, absence: Absence, late: bool
) -> None:
    shown = event(notice=notice, started=notice)
    got = one(shown, notice, absence)
    assert (got.notice, got.late) == (timedelta(), late)
    got = one(shown, None, absence)
    assert (got.late, got.never) == (late, not late)


def test_a_later_absence_does_not_make_notice_late() -> None:
    got = one(event(), 30 * SECOND, away(MINUTE, 14 * MINUTE))
    assert (got.notice, got.late) == (14 * MINUTE + 30 * SECOND, False)


def test_absences_add_up() -> None:
    short = away(MINUTE, MINUTE + 16 * SECOND)
    assert not one(event(), None, short).late
    assert one(event(), None, short, away(3 * MINUTE, 3 * MINUTE + 15 * SECOND)).late


def test_an_approval_waives_the_rest_of_the_notice() -> None:
    early = event(started=2 * SECOND, approved=True)
    assert one(early, SECOND) == MachineNotice(
        machine=MachineName("a"), sent_at=NOON + SECOND, notice=SECOND, late=False
    )


def test_an_approval_of_a_peer_before_the_machine_polled_is_not_late_notice() -> None:
    early = event(started=2 * SECOND, approved=True)
    got = one(early, 3 * SECOND, away(timedelta(), SECOND))
    assert (got.notice, got.late) == (timedelta(), False)


def test_an_early_start_counts_as_approved_after_the_approver_left() -> None:
    early = event("a", started=2 * SECOND)
    assert (early.approved, one(early, SECOND, away(timedelta(), SECOND)).late) == (False, False)


def test_a_judged_event_is_not_judged_again() -> None:
    judged = replace(event(), judged=True)
    assert not one(judged, None, away(timedelta(), 14 * MINUTE)).late
    (resource,) = judged.resources
    assert one(replace(judged, resources=(replace(resource, late=True),)), None).late


def test_a_late_start_adds_to_the_notice() -> None:
    assert one(event(started=20 * MINUTE), 5 * MINUTE) == MachineNotice(
        machine=MachineName("a"), sent_at=NOON + 5 * MINUTE, notice=15 * MINUTE, late=False
    )


def test_notice_is_not_late_before_the_start() -> None:
    got = one(event(started=None), 14 * MINUTE)
    assert got == MachineNotice(machine=MachineName("a"), sent_at=NOON + 14 * MINUTE)


def test_an_event_that_is_born_started_promised_nothing() -> None:
    born = event(notice=timedelta(), started=timedelta())
    assert one(born, SECOND).late is False
    assert summary([(born, by_machine(born, {}))]) == NoticeSummary()


def test_an_event_that_starts_when_it_is_announced_promised_nothing() -> None:
    at_once = event(started=timedelta(), approved=True)
    assert one(at_once, SECOND).late is False
    assert summary([(at_once, by_machine(at_once, {}))]) == NoticeSummary()


def test_machines_are_named_in_the_order_of_the_document() -> None:
    assert [each.machine for each in by_machine(event("b", "A", "c"), {})] == ["A", "b", "c"]


def test_a_summary_has_the_least_notice_and_counts_late_and_never() -> None:
    first, second = event("a", "b", "c"), event("d", started=None)
    sent = {MachineId("id of a"): NOON + 22 * SECOND, MachineId("id of b"): NOON + 10 * MINUTE}
    summed = summary([(first, by_machine(first, sent)), (second, by_machine(second, {}))])
    assert summed == NoticeSummary(least=5 * MINUTE, late=0, never=1, so_far=True)
    told = by_machine(first, sent, absences=[away(timedelta(), 10 * MINUTE)])
    assert summary([(first, told)]) == NoticeSummary(least=5 * MINUTE, late=2, never=0, so_far=True)


def test_the_summary_of_a_listed_event_is_preliminary_until_it_is_judged() -> None:
    shown = event()
    for changed, so_far in ((shown, True), (replace(shown, judged=True), False), (over(shown), False)):
        summed = summary([(changed, by_machine(changed, {}))])
        assert (summed.so_far, total([NoticeSummary(), summed]).so_far) == (so_far, so_far)


def over(shown: Event) -> Event:
    return replace(shown, ended_at=NOON + 30 * MINUTE)


def test_one_event_has_a_summary_once_its_promise_fell_due() -> None:
    shown = event()
    assert summary_of(shown, by_machine(shown, {})) == NoticeSummary(never=1, so_far=True)
    coming = event(started=None)
    assert summary_of(coming, by_machine(coming, {})) is None


def test_a_recommendation_has_no_impact() -> None:
    hint = replace(event(), type=EventType.SPOT_REBALANCE_RECOMMENDATION)
    assert impact(order(step("a", 0, 4)), hint) is None


def test_events_that_never_started_have_no_summary() -> None:
    gone = replace(event(started=None), ended_at=NOON + MINUTE)
    assert summary([(gone, by_machine(gone, {}))]) == NoticeSummary()


def step(name: str, begun: int | None, ended: int | None, state: StepState = StepState.DONE) -> Step:
    return Step(
        machine=MachineId(f"id of {name}"),
        name=MachineName(name),
        group=GroupName("web"),
        update_domain=0,
        work=Work.FREEZE,
        state=state,
        begun_at=None if begun is None else NOON + begun * SECOND,
        ended_at=None if ended is None else NOON + ended * SECOND,
    )


def order(*steps: Step) -> Order:
    return Order(
        id=OrderId("O"),
        number=1,
        action=Action.MAINTENANCE,
        work=Work.FREEZE,
        source=Source.PLATFORM,
        project=None,
        machine=None,
        machine_name=None,
        host=None,
        by="test",
        stages=(Stage(state=StageState.STARTED, steps=steps),),
        created_at=NOON,
    )


def test_the_impact_is_the_longest_of_all_machines() -> None:
    worked = order(step("a", 0, 4), step("b", 2, 9), step("other", 0, 60))
    assert impact(worked, event("a", "b")) == 7 * SECOND


def test_the_impact_is_unknown_while_a_step_runs() -> None:
    worked = order(step("a", 0, 4), step("b", 2, None, StepState.RUNNING))
    assert impact(worked, event("a", "b")) is None


def test_a_step_that_never_began_has_no_impact() -> None:
    worked = order(step("a", 0, 4), step("b", None, 5, StepState.MOOT))
    assert impact(worked, event("a", "b")) == 4 * SECOND
    assert impact(worked, event("b")) is None


def test_a_forgotten_event_counts_no_machine_as_never_notified() -> None:
    assert len(by_machine(event("web-0"), {})) == 1
    assert by_machine(replace(event("web-0"), forgotten=True), {}) == ()


def test_the_impact_measured_by_a_driver_wins() -> None:
    worked = order(replace(step("a", 0, 40), impact=0.3), step("b", 0, 2))
    assert impact(worked, event("a")) == 0.3 * SECOND
    assert [each.away for each in by_machine(event("a", "b"), {}, worked)] == [0.3 * SECOND, None]
    assert [each.away for each in by_machine(event("a"), {})] == [None]
    hint = replace(event("a"), type=EventType.SPOT_REBALANCE_RECOMMENDATION)
    assert [each.away for each in by_machine(hint, {}, replace(worked, stages=()))] == [None]
