"""Rule 4: only armed events block other update domains, and unarmed events do not start."""

import itertools
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    GroupName,
    Kind,
    MachineName,
    Mobility,
    OrderState,
)
from forewarn.core.model.constraints import Hold
from forewarn.core.model.event import Event
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order
from forewarn.core.orders import arming, lifecycle
from forewarn.core.orders.interventions import cancel
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

DAY = timedelta(days=1)
WEEK, TEN = 7 * DAY, 10 * MINUTE  # the notice of a degraded host, and the minimum notice of a Redeploy


def two_hosts(**more: object) -> Fleet:
    """Place two update domains of `web` on a host each, beside an empty host."""
    return Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), hosts=["host-9"], **more)  # type: ignore[arg-type]


def degrade(fleet: Fleet, host: str = "host-1", **terms: object) -> Order:
    return fleet.maintain(host, Action.DEGRADE, **terms)


def only(fleet: Fleet, order: Order) -> Event:
    (event,) = fleet.events(order.id)
    return event


def now(fleet: Fleet, order: Order) -> Order:
    return fleet.draft.orders[order.id]


def end(fleet: Fleet, order: Order) -> None:
    """Finish a started order and its event."""
    fleet.finish(order.id)
    fleet.pass_(90 * SECOND)


# Arming


def test_an_event_with_the_minimum_notice_is_armed_from_its_announcement() -> None:
    fleet = two_hosts()
    assert only(fleet, fleet.maintain()).armed_at == NOON


def test_an_event_with_more_notice_is_armed_when_only_the_minimum_is_left() -> None:
    fleet = two_hosts()
    order = degrade(fleet)
    assert only(fleet, order).armed_at is None
    assert order.due_at == NOON + WEEK - TEN
    fleet.pass_(WEEK - TEN - SECOND)
    assert only(fleet, order).armed_at is None
    fleet.pass_(SECOND)
    assert only(fleet, order).armed_at == NOON + WEEK - TEN
    assert now(fleet, order).due_at == NOON + WEEK
    assert only(fleet, order).not_before == NOON + WEEK


def test_an_approved_event_is_armed_and_starts() -> None:
    fleet = two_hosts()
    order = degrade(fleet)
    fleet.turn(HOUR)
    fleet.approve(only(fleet, order))
    event = only(fleet, order)
    assert (event.armed_at, event.status) == (NOON + HOUR, EventStatus.STARTED)


def test_the_first_approval_arms_all_events_that_start_together() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"), hosts=["host-9"])
    order = degrade(fleet)
    _db, web = fleet.events(order.id)
    fleet.approve(web)
    assert [event.armed for event in fleet.events(order.id)] == [True, True]
    assert now(fleet, order).state is OrderState.ANNOUNCED


def test_a_recommendation_is_never_armed() -> None:
    from forewarn.core.basic_types import Priority

    fleet = Fleet(machine("web-0", priority=Priority.SPOT))
    fleet.order("web-0", Action.RECOMMEND_REBALANCE)
    assert [event.armed for event in fleet.events()] == [False]


def test_arming_does_not_change_the_document() -> None:
    fleet = two_hosts()
    degrade(fleet)
    fleet.turn()
    before = fleet.draft.groups["web"].incarnation  # type: ignore[index]
    fleet.pass_(WEEK - TEN)
    fleet.turn()
    assert fleet.draft.groups["web"].incarnation == before  # type: ignore[index]


# Events that are blocked


def test_a_second_degraded_host_is_announced_at_once() -> None:
    fleet = two_hosts()
    degrade(fleet)
    second = degrade(fleet, "host-2")
    assert second.state is OrderState.ANNOUNCED
    assert only(fleet, second).not_before == NOON + WEEK


def test_a_degraded_host_with_long_notice_does_not_block_maintenance() -> None:
    fleet = two_hosts()
    degrade(fleet)
    assert fleet.maintain("host-2").state is OrderState.ANNOUNCED


def test_a_machine_of_an_unarmed_event_counts_as_healthy() -> None:
    fleet = Fleet(
        *(machine(f"web-{n}", f"host-{n + 1}", domain=n) for n in range(3)),
        policies={"web": GroupPolicy(budget=2)},
    )
    degrade(fleet)
    fleet.turn()
    assert fleet.maintain("host-2").state is OrderState.ANNOUNCED


def test_an_event_at_its_minimum_notice_blocks_other_update_domains() -> None:
    fleet = two_hosts()
    degrade(fleet)
    fleet.pass_(WEEK - TEN)
    waiting = fleet.maintain("host-2")
    assert fleet.waits(waiting.id) == ["web: update domain 1 waits for domain 0"]


def test_a_users_own_order_is_armed_beside_another_update_domain() -> None:
    fleet = two_hosts(policies={"web": GroupPolicy(notice=HOUR)})
    fleet.order("web-0")
    event = only(fleet, restart := fleet.order("web-1"))
    assert not event.armed
    fleet.approve(fleet.events()[0])
    fleet.pass_(HOUR - 15 * MINUTE)
    assert only(fleet, restart).armed_at == fleet.now


# Events that cannot be armed


def test_an_event_that_cannot_be_armed_is_postponed_with_the_reason() -> None:
    fleet = two_hosts()
    first, second = degrade(fleet), degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    assert only(fleet, first).armed
    event = only(fleet, second)
    until = NOON + WEEK + 5 * MINUTE  # the expected work of the first order
    assert (event.armed, event.not_before) == (False, until)
    because = f"web: update domain 1 waits for domain 0 (order {first.id})"
    assert fleet.waits(second.id)[0] == because
    assert (event.postponed.since, event.postponed.reason) == (NOON + WEEK, because)  # type: ignore[union-attr]
    assert fleet.history(Kind.EVENT_POSTPONED) == [f"until 2026-01-12T12:05:00Z: 5 m later, {because}"]


def test_a_group_reads_nothing_about_other_groups_on_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), machine("db-0", "host-2"))
    degrade(fleet)
    second = degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    reasons = {event.group: event.postponed.reason for event in fleet.events(second.id) if event.postponed}
    assert "web: update domain 1 waits" in reasons[GroupName("web")]
    assert reasons[GroupName("db")] == arming.WITH_OTHERS


def test_guests_see_a_postponed_not_before() -> None:
    fleet = two_hosts()
    degrade(fleet)
    degrade(fleet, "host-2")
    fleet.turn()
    before = fleet.draft.groups["web"].incarnation  # type: ignore[index]
    fleet.pass_(WEEK - TEN)
    fleet.turn()
    assert fleet.draft.groups["web"].incarnation == before + 1  # type: ignore[index]


def test_advancing_again_postpones_nothing() -> None:
    fleet = two_hosts()
    degrade(fleet)
    second = degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    event, order = only(fleet, second), now(fleet, second)
    fleet.pass_(timedelta())
    fleet.pass_(SECOND)
    assert (only(fleet, second), now(fleet, second)) == (event, order)


def test_postponements_grow_with_the_time_waited() -> None:
    fleet = two_hosts()
    first = fleet.maintain("host-1", driver="external")
    second = degrade(fleet, "host-2")
    moved = [only(fleet, second).not_before]
    fleet.approve(only(fleet, first))
    while len(moved) < 8:
        order = now(fleet, second)
        assert order.due_at is not None
        fleet.pass_(order.due_at - fleet.now)
        if only(fleet, second).not_before != moved[-1]:
            moved.append(only(fleet, second).not_before)
    gaps = [(later - sooner) // MINUTE for sooner, later in itertools.pairwise(moved)]
    assert gaps == [5, 5, 10, 20, 30, 30, 30]


def test_a_postponed_event_is_armed_once_the_other_event_is_over() -> None:
    fleet = two_hosts()
    first, second = degrade(fleet), degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    fleet.approve(only(fleet, first))
    end(fleet, first)
    fleet.pass_(timedelta())
    event = only(fleet, second)
    assert event.armed_at == fleet.now < event.not_before - TEN
    fleet.pass_(event.not_before - fleet.now)
    assert only(fleet, second).status is EventStatus.STARTED


def test_an_early_approval_is_kept_and_takes_effect_when_the_event_is_armed() -> None:
    fleet = two_hosts()
    first, second = degrade(fleet), degrade(fleet, "host-2")
    fleet.approve(only(fleet, first))
    fleet.approve(only(fleet, second), by="web-1")
    event = only(fleet, second)
    assert (event.approved, event.armed, event.not_before) == (True, False, NOON + WEEK)
    assert fleet.waits(second.id) == [
        f"web: update domain 1 waits for domain 0 (order {first.id})",
        f"{event.id}: approved, waits for other machines of its group",
    ]
    end(fleet, first)
    fleet.pass_(timedelta())
    assert only(fleet, second).status is EventStatus.STARTED


def test_events_of_a_stage_are_armed_together_or_not_at_all() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"), machine("web-1", "host-2", domain=1), hosts=["host-9"])
    order = degrade(fleet)
    other = fleet.maintain("host-2", driver="external")
    fleet.approve(only(fleet, other), by="web-1")
    fleet.pass_(WEEK - TEN)
    assert [event.armed for event in fleet.events(order.id)] == [False, False]
    assert {event.not_before for event in fleet.events(order.id)} == {NOON + WEEK + 5 * MINUTE}
    assert fleet.maintain("host-9").state is not OrderState.QUEUED


def crossed() -> tuple[Fleet, Order, Order]:
    """Announce work on two hosts an hour ahead; each has another update domain of the same two groups."""
    fleet = Fleet(
        *(machine("web-0"), machine("db-0")),
        *(machine("web-1", "host-2", domain=1), machine("db-1", "host-2", domain=1)),
        policies={"web": GroupPolicy(notice=HOUR)},
    )
    return fleet, fleet.maintain("host-1"), fleet.maintain("host-2")


def event_of(fleet: Fleet, name: str) -> Event:
    (event,) = (each for each in fleet.events() if each.resources[0].name == name)
    return event


def test_two_hosts_with_crossed_approvals_do_not_deadlock() -> None:
    fleet, first, second = crossed()
    fleet.approve(event_of(fleet, "web-0"), by="web-0")
    fleet.approve(event_of(fleet, "db-1"), by="db-1")
    assert [event.armed for event in fleet.events(first.id)] == [True, True]
    assert [event.armed for event in fleet.events(second.id)] == [False, False]
    fleet.pass_(HOUR)
    assert {event.status for event in fleet.events(first.id)} == {EventStatus.STARTED}
    end(fleet, first)
    fleet.pass_(timedelta())
    assert [event.armed for event in fleet.events(second.id)] == [True, True]
    fleet.pass_(only_not_before(fleet, second) - fleet.now)
    assert {event.status for event in fleet.events(second.id)} == {EventStatus.STARTED}
    assert fleet.history(Kind.EVENT_WITHDRAWN) == []


def only_not_before(fleet: Fleet, order: Order) -> datetime:
    (not_before,) = {event.not_before for event in fleet.events(order.id)}
    return not_before


def test_an_approval_of_a_stage_that_cannot_be_armed_is_kept_and_shown() -> None:
    fleet, first, second = crossed()
    fleet.approve(event_of(fleet, "web-0"), by="web-0")
    fleet.approve(event_of(fleet, "db-1"), by="db-1")
    event = event_of(fleet, "db-1")
    assert (event.approved, event.armed) == (True, False)
    assert fleet.waits(second.id)[:3] == [
        f"db: update domain 1 waits for domain 0 (order {first.id})",
        f"web: update domain 1 waits for domain 0 (order {first.id})",
        f"{event.id}: approved, waits for other machines of its group",
    ]


def test_an_approved_event_whose_host_waits_for_another_group_names_no_group() -> None:
    fleet = Fleet(
        *(machine("web-0"), machine("db-1", "host-2", domain=1), machine("web-1", "host-2", domain=1)),
        hosts=["host-9"],
    )
    fleet.approve(only(fleet, fleet.maintain("host-1", driver="external")))
    second = degrade(fleet, "host-2")
    fleet.approve(event_of(fleet, "db-1"), by="db-1")
    assert f"{event_of(fleet, 'db-1').id}: approved, waits for {arming.OTHERS_ON_HOST}" in fleet.waits(
        second.id
    )


def test_a_latecomer_of_an_armed_stage_is_armed_with_its_announcement() -> None:
    fleet, first, _second = crossed_whole()
    fleet.approve(event_of(fleet, "web-0"), by="web-0")
    fleet.draft.put_machine(machine("app-0"))
    fleet.pass_(MINUTE)
    assert [event.armed for event in fleet.events(first.id)] == [True, True, True]


def test_a_latecomer_of_an_unarmed_stage_is_armed_with_the_others() -> None:
    fleet, first, second = crossed_whole()
    fleet.approve(event_of(fleet, "web-1"), by="web-1")
    fleet.draft.put_machine(machine("app-0"))
    fleet.pass_(MINUTE)
    assert [event.armed for event in fleet.events(first.id)] == [False, False, False]
    assert [event.armed for event in fleet.events(second.id)] == [True, True]


def crossed_whole() -> tuple[Fleet, Order, Order]:
    """Announce work on both hosts in one go, so that each waits for latecomers."""
    fleet = Fleet(
        *(machine("web-0"), machine("db-0"), machine("app-9", "host-9")),
        *(machine("web-1", "host-2", domain=1), machine("db-1", "host-2", domain=1)),
        policies={"web": GroupPolicy(notice=HOUR), "db": GroupPolicy(notice=HOUR)},
    )
    return fleet, fleet.maintain("host-1", whole=True), fleet.maintain("host-2", whole=True)


def test_an_armed_stage_is_withdrawn_if_its_latecomer_cannot_be_announced() -> None:
    fleet = Fleet(machine("web-0"), machine("app-1", "host-2", domain=1), machine("db-0", "host-3"))
    first = fleet.maintain("host-1", whole=True)
    second = fleet.maintain("host-2", whole=True)
    fleet.draft.put_machine(machine("app-0"))
    fleet.draft.put_machine(machine("web-1", "host-2", domain=1))
    fleet.pass_(MINUTE)
    assert "app-0: is on host-1 too, and was not notified of this work" in fleet.waits(first.id)
    fleet.pass_(14 * MINUTE)
    # The order that is advanced first is withdrawn. Then the other one can announce its latecomer.
    assert fleet.history(Kind.EVENT_WITHDRAWN) == [
        "app-0 came to host-1 and cannot be announced yet; announced again together"
    ]
    assert now(fleet, first).state is OrderState.QUEUED
    assert [event.armed for event in fleet.events(second.id)] == [True, True]
    fleet.pass_(15 * MINUTE)
    end(fleet, second)
    fleet.pass_(timedelta())
    assert [event.armed for event in fleet.events(first.id)] == [True, True]


def test_an_order_announced_three_times_without_a_start_is_stuck() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    for times in (1, 2):
        assert now(fleet, order).withdrawals == times - 1
        assert not any(wait.stuck for wait in now(fleet, order).waiting)
        fleet.pass_(45 * MINUTE)  # the server was down, so nothing started in time
    assert only(fleet, order).status is EventStatus.SCHEDULED
    assert fleet.waits(order.id)[0] == (
        f"order {order.id}: announced 3 times without a start; see what it waits for, or cancel it"
    )
    assert now(fleet, order).waiting[0].stuck
    fleet.approve(only(fleet, order))
    assert (now(fleet, order).withdrawals, now(fleet, order).waiting) == (0, ())


def test_resuming_an_order_resets_its_count_of_announcements() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(45 * MINUTE)
    fleet.pass_(45 * MINUTE)
    lifecycle.pause(fleet.draft, order.id, why="stuck")
    lifecycle.resume(fleet.draft, order.id)
    fleet.advance(order.id)
    assert (now(fleet, order).withdrawals, now(fleet, order).state) == (0, OrderState.ANNOUNCED)


def test_a_budget_is_checked_when_work_with_long_notice_is_armed() -> None:
    fleet = Fleet(
        *(machine(f"web-{n}", f"host-{n + 1}") for n in range(3)),
        policies={"web": GroupPolicy(budget=2, notice=HOUR)},
    )
    first, second = fleet.maintain("host-1"), fleet.maintain("host-2")
    fleet.turn()
    fleet.pass_(HOUR - 15 * MINUTE)
    assert [event.armed for event in fleet.events()] == [True, False]
    assert fleet.waits(second.id)[0] == "web: needs 2 healthy, web-0 is under an event"
    assert now(fleet, first).state is OrderState.ANNOUNCED


def test_an_approved_event_that_waits_for_a_budget_names_no_update_domain() -> None:
    fleet = Fleet(
        *(machine(f"web-{n}", f"host-{n + 1}") for n in range(3)),
        policies={"web": GroupPolicy(budget=2, notice=HOUR)},
    )
    first, second = fleet.maintain("host-1", driver="external"), fleet.maintain("host-2")
    fleet.approve(only(fleet, first))
    fleet.approve(only(fleet, second), by="web-1")
    assert fleet.waits(second.id) == [
        "web: needs 2 healthy, web-0 is under an event",
        f"{only(fleet, second).id}: approved, waits for other machines of its group",
    ]


def test_an_event_that_is_armed_late_starts_at_its_not_before() -> None:
    fleet = two_hosts()
    order = degrade(fleet)
    fleet.pass_(WEEK - MINUTE)
    assert only(fleet, order).armed_at == fleet.now
    fleet.pass_(MINUTE)
    assert only(fleet, order).status is EventStatus.STARTED


def test_an_event_that_cannot_be_armed_after_an_outage_gets_the_minimum_notice_again() -> None:
    fleet = two_hosts()
    other = fleet.maintain("host-1", driver="external")
    fleet.approve(only(fleet, other))
    order = degrade(fleet, "host-2")
    fleet.pass_(WEEK + MINUTE)
    assert only(fleet, order).not_before == fleet.now + TEN + 5 * MINUTE


def test_an_event_that_could_not_be_armed_for_too_long_is_announced_again() -> None:
    fleet = two_hosts()
    order = degrade(fleet)
    fleet.pass_(WEEK + 30 * MINUTE)
    assert fleet.history(Kind.EVENT_WITHDRAWN) == [
        "could not start within the limit after 12:00:00; announced again"
    ]
    assert only(fleet, order).not_before == fleet.now + WEEK


def test_started_events_block_each_other_across_a_hold() -> None:
    fleet = two_hosts()
    first, second = degrade(fleet), degrade(fleet, "host-2")
    fleet.approve(only(fleet, first))
    fleet.draft.holds["H"] = Hold(id="H", by="ops", reason="a fair", at=NOON)
    fleet.approve(only(fleet, second), by="web-1")
    end(fleet, first)
    fleet.pass_(timedelta())
    event = only(fleet, second)
    assert (event.armed, event.status) == (True, EventStatus.SCHEDULED)
    assert fleet.waits(second.id) == ["the whole fleet: held by ops: a fair"]


def test_a_deferred_event_is_armed_later_by_the_same_time() -> None:
    fleet = two_hosts(policies={"web": GroupPolicy(defer=HOUR)})
    order = degrade(fleet)
    lifecycle.defer(
        fleet.draft, only(fleet, order), by=MachineName("web-0"), wanted=HOUR, policy=fleet.policy
    )
    assert now(fleet, order).due_at == NOON + WEEK + HOUR - TEN


def test_cancelling_an_order_lets_a_waiting_one_be_armed() -> None:
    fleet = two_hosts()
    first, second = degrade(fleet), degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    cancel(fleet.draft, first.id, by="test")
    assert fleet.draft.changes().relieved_groups == {"web"}
    fleet.pass_(timedelta())
    assert only(fleet, second).armed


def test_two_orders_arm_the_same_update_domain() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"), hosts=["host-9"])
    degrade(fleet)
    degrade(fleet, "host-2")
    fleet.pass_(WEEK - TEN)
    assert [event.armed for event in fleet.events()] == [True, True]


# Emergencies


def test_an_emergency_ignores_other_update_domains_and_records_it() -> None:
    fleet = two_hosts()
    first = fleet.maintain("host-1")
    second = fleet.maintain("host-2", emergency="coolant leak", notice=MINUTE)
    assert second.state is OrderState.ANNOUNCED
    assert fleet.history(Kind.PROMISE_BROKEN) == [
        "coolant leak: 1 m of notice instead of 15 m",
        f"coolant leak: announced although web: update domain 1 waits for domain 0 (order {first.id})",
    ]


def test_an_emergency_that_conflicts_with_itself_does_not_name_another_order() -> None:
    fleet = Fleet(
        machine("web-0", mobility=Mobility.LIVE),
        machine("web-1", domain=1, mobility=Mobility.LIVE),
        hosts=["host-2"],
    )
    fleet.service(emergency="coolant leak", notice=15 * MINUTE)
    assert fleet.history(Kind.PROMISE_BROKEN) == [
        "coolant leak: announced although web: update domain 1 waits for domain 0 (of this same order)"
    ]


def test_an_emergency_with_longer_notice_records_conflicts_when_it_is_armed() -> None:
    fleet = two_hosts()
    degrade(fleet, "host-2", emergency="coolant leak", notice=HOUR)
    first = fleet.maintain("host-1", driver="external")
    fleet.pass_(15 * MINUTE)
    assert len(fleet.history(Kind.PROMISE_BROKEN)) == 1
    fleet.pass_(HOUR - 15 * MINUTE - TEN)
    assert fleet.history(Kind.PROMISE_BROKEN)[1:] == [
        f"coolant leak: announced although web: update domain 1 waits for domain 0 (order {first.id})"
    ]


def test_an_emergency_that_ignores_a_budget_records_it() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"), policies={"web": GroupPolicy(budget=1)})
    fleet.maintain("host-1")
    fleet.turn()
    fleet.maintain("host-2", emergency="coolant leak", notice=15 * MINUTE)
    (said,) = fleet.history(Kind.PROMISE_BROKEN)
    assert said.startswith("coolant leak: announced although web: needs 1 healthy, web-0")


def test_an_emergency_without_conflicts_records_nothing() -> None:
    fleet = two_hosts()
    fleet.maintain(emergency="coolant leak", notice=15 * MINUTE)
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_a_hold_stops_an_emergency_unless_the_caller_overrides_it() -> None:
    fleet = two_hosts()
    fleet.draft.holds["H"] = Hold(id="H", by="ops", reason="a fair", at=NOON)
    assert fleet.maintain("host-1", emergency="coolant leak", notice=MINUTE).state is OrderState.QUEUED
    despite = fleet.maintain("host-2", emergency="coolant leak", notice=MINUTE, despite_hold=True)
    assert despite.state is OrderState.ANNOUNCED
    assert fleet.history(Kind.PROMISE_BROKEN)[1:] == [
        "coolant leak: announced although the whole fleet: held by ops: a fair"
    ]
    fleet.pass_(MINUTE)
    assert only(fleet, despite).status is EventStatus.STARTED


def test_a_latecomer_of_an_emergency_records_conflicts() -> None:
    fleet = two_hosts()
    fleet.maintain("host-1")
    order = fleet.maintain("host-2", emergency="coolant leak", notice=15 * MINUTE)
    fleet.draft.put_machine(machine("web-2", "host-2", domain=1))
    fleet.pass_(MINUTE)
    assert len(fleet.events(order.id)) == 2
    assert len(fleet.history(Kind.PROMISE_BROKEN)) == 2


def test_armed_domains_of_the_order_itself_can_be_excluded() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), machine("db-0"), hosts=["host-9"])
    order = fleet.maintain(together="its board is swapped")
    web = fleet.events(order.id)[1].group
    assert list(fleet.draft.armed_domains(web)) == [0, 1]
    assert fleet.draft.armed_domains(web, but_of=order.id) == {}
