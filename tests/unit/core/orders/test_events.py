"""Events: their notice, approvals, deferrals and records (rules 1 to 3)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import (
    Action,
    ApprovalRule,
    ApprovedBy,
    EventStatus,
    Kind,
    MachineId,
    MachineName,
    Priority,
    Source,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Grace
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order
from forewarn.core.orders import events
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

POLICY = ApprovedBy.POLICY


def only(fleet: Fleet) -> Event:
    (event,) = fleet.events()
    return event


def announced(fleet: Fleet, order: Order) -> list[tuple[str, int, list[str]]]:
    return [
        (event.group, event.update_domain, [each.name for each in event.resources])
        for event in fleet.events(order.id)
    ]


# Rule 3


def test_a_stage_has_an_event_for_each_group_and_update_domain() -> None:
    fleet = Fleet(machine("web-1"), machine("web-0"), machine("db-0", domain=2))
    order = fleet.maintain()
    assert announced(fleet, order) == [("db", 2, ["db-0"]), ("web", 0, ["web-0", "web-1"])]


def test_a_failed_host_gives_each_update_domain_its_own_event_at_once() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=["host-2"])
    order = fleet.maintain(action=Action.FAIL)
    assert announced(fleet, order) == [("web", 0, ["web-0"]), ("web", 1, ["web-1"])]
    assert {event.status for event in fleet.events()} == {EventStatus.STARTED}


def test_resources_are_sorted_without_regard_to_case() -> None:
    fleet = Fleet(machine("web-b"), machine("web-A"), machine("web-c"))
    fleet.maintain()
    assert [each.name for each in only(fleet).resources] == ["web-A", "web-b", "web-c"]


# Rule 1: notice


@pytest.mark.parametrize(
    ("work", "notice"),
    [(Work.FREEZE, 15 * MINUTE), (Work.REBOOT, 15 * MINUTE), (Work.REDEPLOY, 10 * MINUTE)],
)
def test_an_event_has_the_notice_of_its_type(work: Work, notice: timedelta) -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain(work=work)
    assert only(fleet).not_before == NOON + notice


@pytest.mark.parametrize(("action", "notice"), [(Action.EVICT, 30 * SECOND), (Action.TERMINATE, 5 * MINUTE)])
def test_an_eviction_has_less_notice(action: Action, notice: timedelta) -> None:
    fleet = Fleet(machine("web-0", priority=Priority.SPOT))
    fleet.order("web-0", action)
    assert only(fleet).not_before == NOON + notice


def test_a_group_may_ask_for_more_notice_but_never_gets_less_than_the_minimum() -> None:
    more, less = GroupPolicy(notice=HOUR), GroupPolicy(notice=MINUTE)
    for policy, notice in ((more, HOUR), (less, 15 * MINUTE)):
        fleet = Fleet(machine("web-0"), policies={"web": policy})
        fleet.maintain()
        assert only(fleet).not_before == NOON + notice


def test_the_group_that_asks_for_most_notice_decides_for_its_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"), policies={"db": GroupPolicy(notice=HOUR)})
    fleet.maintain()
    assert {event.not_before for event in fleet.events()} == {NOON + HOUR}


def test_not_before_is_rounded_up_to_a_whole_second() -> None:
    fleet = Fleet(machine("web-0"), now=NOON + timedelta(milliseconds=1))
    fleet.maintain()
    assert only(fleet).not_before == NOON + 15 * MINUTE + SECOND


def test_an_emergency_shortens_the_notice_and_is_recorded_as_a_broken_promise() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain(emergency="coolant leak", notice=2 * MINUTE)
    assert only(fleet).not_before == NOON + 2 * MINUTE
    assert fleet.history(Kind.PROMISE_BROKEN) == ["coolant leak: 2 m of notice instead of 15 m"]


def test_an_emergency_that_keeps_the_notice_breaks_no_promise() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain(emergency="coolant leak", notice=HOUR)
    assert only(fleet).not_before == NOON + 15 * MINUTE
    assert fleet.history(Kind.PROMISE_BROKEN) == []


# Rule 1: approvals


def approval(by: str, kind: ApprovedBy = ApprovedBy.GUEST) -> Approval:
    return Approval(by=by, kind=kind, at=NOON)


@pytest.mark.parametrize(
    ("rule", "approvals", "awaited"),
    [
        (ApprovalRule.ANY, [], ["web-0", "web-1"]),
        (ApprovalRule.ANY, ["web-1"], []),
        (ApprovalRule.ALL, ["web-1"], ["web-0"]),
        (ApprovalRule.ALL, ["web-1", "web-0"], []),
        (ApprovalRule.LEADER, ["web-1"], ["web-0"]),
        (ApprovalRule.LEADER, ["web-0"], []),
    ],
)
def test_the_approval_rule_of_a_group_decides_which_approvals_count(
    rule: ApprovalRule, approvals: list[str], awaited: list[str]
) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), policies={"web": GroupPolicy(approval=rule)})
    fleet.maintain()
    for name in approvals:
        events.approve(fleet.draft, only(fleet), approval(name))
    assert (list(only(fleet).awaited), only(fleet).approved) == (awaited, not awaited)


@pytest.mark.parametrize("kind", [ApprovedBy.PERSON, ApprovedBy.POLICY])
def test_an_approval_by_a_person_or_policy_counts_for_all_machines(kind: ApprovedBy) -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(approval=ApprovalRule.ALL)})
    fleet.maintain()
    assert events.approve(fleet.draft, only(fleet), approval("alice", kind)).approved


def test_approving_twice_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    fleet.maintain()
    once = events.approve(fleet.draft, only(fleet), approval("web-0"))
    assert events.approve(fleet.draft, once, approval("web-0")) is once
    assert fleet.history(Kind.EVENT_APPROVED) == ["guest"]


def test_an_approval_of_a_started_or_ended_event_is_ignored() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    started = events.start(fleet.draft, only(fleet), why="NotBefore has passed")
    assert events.approve(fleet.draft, started, approval("web-0")) is started
    gone = replace(started, status=EventStatus.SCHEDULED, ended_at=NOON)
    assert events.approve(fleet.draft, gone, approval("web-0")) is gone


def test_an_owner_can_approve_with_the_order() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.order("web-0", at_once=True)
    assert [(word.by, word.kind) for word in only(fleet).approvals] == [("test", ApprovedBy.PERSON)]


def test_a_group_can_approve_its_users_own_orders_automatically() -> None:
    fleet = Fleet(
        machine("web-0"), machine("web-1", "host-2"), policies={"web": GroupPolicy(auto_approve=True)}
    )
    order, platform = fleet.order("web-0"), fleet.maintain("host-2")
    assert [word.kind for word in fleet.events(order.id)[0].approvals] == [POLICY]
    assert [word.kind for word in fleet.events(platform.id)[0].approvals] == []


def test_an_event_may_start_at_its_not_before_or_once_it_is_approved() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    assert events.may_start_at(fleet.draft, only(fleet)) == NOON + 15 * MINUTE
    events.approve(fleet.draft, only(fleet), approval("web-0"))
    assert events.may_start_at(fleet.draft, only(fleet)) == NOON


def test_after_a_clock_jump_events_announced_before_it_wait_longer() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    later = NOON + 20 * MINUTE
    for before, start in ((NOON, later), (NOON - SECOND, NOON + 15 * MINUTE)):
        fleet.draft.grace = Grace(until=later, announced_before=before)
        assert events.may_start_at(fleet.draft, only(fleet)) == start


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ApprovalRule.ANY, "any of its machines"),
        (ApprovalRule.ALL, "web-0, web-1"),
        (ApprovalRule.LEADER, "the leader web-0"),
    ],
)
def test_the_awaited_approvals_are_named(rule: ApprovalRule, words: str) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), policies={"web": GroupPolicy(approval=rule)})
    fleet.maintain()
    assert events.awaited_approvals(only(fleet)) == words
    assert events.awaited_approvals(events.start(fleet.draft, only(fleet), why="it is time")) == ""


def test_an_ignored_approval_is_named_beside_the_awaited_leader() -> None:
    fleet = Fleet(
        machine("web-0"), machine("web-1"), policies={"web": GroupPolicy(approval=ApprovalRule.LEADER)}
    )
    fleet.maintain()
    events.approve(fleet.draft, only(fleet), approval("web-1"))
    assert events.awaited_approvals(only(fleet)) == "the leader web-0; the approval of web-1 does not count"


# Deferring


def deferrable(limit: timedelta = HOUR) -> Fleet:
    fleet = Fleet(machine("web-0"), machine("db-0"), policies={"web": GroupPolicy(defer=limit)})
    fleet.maintain()
    return fleet


def defer(fleet: Fleet, wanted: timedelta = 10 * MINUTE, **more: object) -> None:
    event = next(event for event in fleet.events() if event.group == "web")
    events.defer(
        fleet.draft,
        fleet.events(),
        event,
        by=MachineName("web-0"),
        wanted=wanted,
        latest=more.get("latest"),  # type: ignore[arg-type]
    )


def test_deferring_an_event_defers_its_whole_stage() -> None:
    fleet = deferrable()
    defer(fleet)
    assert {event.not_before for event in fleet.events()} == {NOON + 25 * MINUTE}
    assert fleet.history(Kind.EVENT_DEFERRED) == ["until 2026-01-05T12:25:00Z: 10 m later"] * 2


def test_an_event_with_a_later_not_before_is_not_moved() -> None:
    fleet = deferrable()
    (db,) = (event for event in fleet.events() if event.group == "db")
    fleet.draft.put_event(replace(db, not_before=NOON + HOUR))
    defer(fleet)
    assert {event.group: event.not_before for event in fleet.events()} == {
        "db": NOON + HOUR,
        "web": NOON + 25 * MINUTE,
    }
    assert fleet.history(Kind.EVENT_DEFERRED) == ["until 2026-01-05T12:25:00Z: 10 m later"]


def test_a_deferral_is_limited_by_the_group_and_the_latest_start() -> None:
    fleet = deferrable(5 * MINUTE)
    defer(fleet)
    assert {event.not_before for event in fleet.events()} == {NOON + 20 * MINUTE}
    assert fleet.history(Kind.EVENT_DEFERRED)[0] == "until 2026-01-05T12:20:00Z: 5 m later (10 m asked for)"
    fleet = deferrable()
    defer(fleet, latest=NOON + 18 * MINUTE)
    assert {event.not_before for event in fleet.events()} == {NOON + 18 * MINUTE}


def test_a_deferral_records_how_much_more_time_was_granted() -> None:
    fleet = deferrable(5 * MINUTE)
    defer(fleet)
    (given,) = (event.deferred for event in fleet.events() if event.deferred)
    assert (given.granted, given.asked) == (5 * MINUTE, 10 * MINUTE)


def test_an_event_can_be_deferred_once() -> None:
    fleet = deferrable()
    defer(fleet)
    with pytest.raises(Conflict, match="was deferred already by web-0"):
        defer(fleet)


def test_a_group_without_deferrals_refuses_them() -> None:
    with pytest.raises(Conflict, match="events of group web cannot be deferred"):
        defer(deferrable(timedelta()))


def test_a_started_event_cannot_be_deferred() -> None:
    fleet = deferrable()
    for event in fleet.events():
        events.start(fleet.draft, event, why="it is time")
    with pytest.raises(Conflict, match="is Started, too late to defer it"):
        defer(fleet)


def test_an_event_cannot_be_deferred_past_its_latest_start() -> None:
    with pytest.raises(Conflict, match="cannot be deferred: it must start by 2026-01-05T12:15:00Z"):
        defer(deferrable(), latest=NOON + 15 * MINUTE)


# Rule 2


def test_an_event_leaves_the_document_with_a_record_of_why() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    events.end(fleet.draft, only(fleet), Kind.EVENT_WITHDRAWN, why="paused")
    assert (fleet.events(), fleet.history(Kind.EVENT_WITHDRAWN)) == ((), ["paused"])


def test_a_machine_leaves_an_event_with_a_record() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    fleet.maintain()
    events.remove_machine(fleet.draft, only(fleet), MachineId("web-1"), why="moved")
    assert [each.name for each in only(fleet).resources] == ["web-0"]
    (left,) = (record for record in fleet.draft.changes().records if record.kind is Kind.EVENT_LEFT)
    assert (left.machine, left.reason) == ("web-1", "moved")


def test_the_last_machine_ends_its_event() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    events.remove_machine(fleet.draft, only(fleet), MachineId("web-0"), why="moved")
    assert (fleet.events(), fleet.history(Kind.EVENT_CANCELLED)) == ((), ["moved"])


def test_removing_an_unnamed_machine_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain()
    before = fleet.draft.changes()
    events.remove_machine(fleet.draft, only(fleet), MachineId("web-9"), why="moved")
    assert fleet.draft.changes() == before


# Guests


def test_a_users_own_order_has_the_source_user() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", "host-2"))
    user, platform = fleet.order("web-0"), fleet.maintain("host-2", work=Work.FREEZE)
    (mine,), (theirs,) = fleet.events(user.id), fleet.events(platform.id)
    assert (mine.source, mine.duration_seconds) == (Source.USER, -1)
    assert mine.description == "Virtual machine is going to be restarted as requested by authorized user."
    assert (theirs.source, theirs.duration_seconds) == (Source.PLATFORM, 9)
    assert theirs.description == "Host server is undergoing maintenance."
