"""The life of an order: announced, started, carried out, ended (rules 1, 4, 5, 10 and 11)."""

from dataclasses import replace
from datetime import time, timedelta

import pytest

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    GroupName,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    OrderId,
    OrderState,
    Priority,
    StageState,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order
from forewarn.core.model.project import Calendar, Window
from forewarn.core.orders import lifecycle
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

QUARTER = 15 * MINUTE
AFTERNOON = Calendar(windows=(Window(days=frozenset(range(7)), start=time(14), length=timedelta(hours=2)),))


def states(order: Order) -> tuple[OrderState, list[StageState]]:
    return order.state, [stage.state for stage in order.stages]


def now(fleet: Fleet, order: Order) -> Order:
    return fleet.draft.orders[order.id]


# Rule 4: two update domains of a group are not disturbed together


def test_platform_work_waits_while_another_update_domain_of_its_group_is_armed() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1))
    fleet.maintain("host-1")
    second = fleet.maintain("host-2")
    assert (second.state, fleet.events(second.id)) == (OrderState.QUEUED, ())
    assert fleet.waits(second.id) == ["web: update domain 1 waits for domain 0"]


def test_platform_work_waits_for_a_users_own_event() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1))
    fleet.order("web-0")
    assert fleet.maintain("host-2").state is OrderState.QUEUED


def test_platform_work_is_announced_once_the_other_update_domain_is_over() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1))
    first, second = fleet.maintain("host-1"), fleet.maintain("host-2")
    fleet.pass_(QUARTER)
    fleet.finish(first.id)
    assert now(fleet, second).state is OrderState.QUEUED
    fleet.pass_(90 * SECOND)
    fleet.pass_(timedelta())
    assert first.id not in fleet.draft.orders
    assert now(fleet, second).state is OrderState.ANNOUNCED
    assert fleet.events()[0].not_before == fleet.now + QUARTER


def test_hosts_with_the_same_update_domain_are_announced_together() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"))
    assert fleet.maintain("host-1").state is fleet.maintain("host-2").state is OrderState.ANNOUNCED


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY, Action.FREEZE, Action.EVICT])
def test_orders_on_one_machine_do_not_wait_for_other_update_domains(action: Action) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1, priority=Priority.SPOT))
    fleet.maintain("host-1")
    assert fleet.order("web-1", action).state is OrderState.ANNOUNCED


def test_a_failed_host_does_not_wait_for_other_update_domains() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), hosts=["host-3"])
    fleet.maintain("host-1")
    assert fleet.maintain("host-2", Action.FAIL).state is OrderState.STARTED


def test_a_host_with_two_update_domains_of_a_group_has_two_stages() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    assert states(order) == (OrderState.ANNOUNCED, [StageState.ANNOUNCED, StageState.QUEUED])
    fleet.pass_(QUARTER)
    fleet.finish(order.id)
    assert [event.update_domain for event in fleet.events()] == [0]
    fleet.pass_(90 * SECOND)
    assert states(now(fleet, order)) == (OrderState.ANNOUNCED, [StageState.DONE, StageState.ANNOUNCED])
    assert [event.update_domain for event in fleet.events()] == [1]


# Rule 5: when a stage starts


def test_a_stage_starts_exactly_at_its_not_before() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER - SECOND)
    assert now(fleet, order).state is OrderState.ANNOUNCED
    fleet.pass_(SECOND)
    assert now(fleet, order).state is OrderState.STARTED
    assert fleet.history(Kind.EVENT_STARTED) == ["NotBefore has passed"]


def test_an_approved_stage_starts_at_once() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.approve(fleet.events()[0])
    assert now(fleet, order).state is OrderState.STARTED
    assert fleet.history(Kind.EVENT_STARTED) == ["approved by web-0"]


def test_a_stage_starts_once_all_its_groups_have_approved() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    order = fleet.maintain()
    db, web = fleet.events()
    fleet.approve(web)
    assert {event.status for event in fleet.events()} == {EventStatus.SCHEDULED}
    fleet.approve(db, by="db-0")
    assert {event.status for event in fleet.events()} == {EventStatus.STARTED}
    assert {step.state for step in now(fleet, order).steps} == {StepState.RUNNING}


def test_a_stage_waits_while_another_order_works_on_one_of_its_machines() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    first = fleet.order("web-0", Action.FREEZE)
    second = fleet.maintain()
    fleet.approve(fleet.events(first.id)[0])
    fleet.approve(fleet.events(second.id)[0])
    assert fleet.waits(second.id) == [f"web-0: waits for order {first.id} (freeze) to finish with it"]
    assert fleet.events(second.id)[0].status is EventStatus.SCHEDULED
    fleet.finish(first.id)
    assert now(fleet, second).state is OrderState.STARTED


def test_a_failed_host_starts_at_once_with_all_its_update_domains() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=["host-2"])
    order = fleet.maintain(action=Action.FAIL)
    assert states(order) == (OrderState.STARTED, [StageState.STARTED, StageState.STARTED])
    assert fleet.history(Kind.EVENT_STARTED) == ["host host-1 failed"] * 2


# Rule 11: a stage that could not start in time is announced again


def test_a_stage_that_could_not_start_for_half_an_hour_is_withdrawn_and_announced_again() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    (stale,) = fleet.events()
    fleet.pass_(QUARTER + 30 * MINUTE)  # an outage
    assert now(fleet, order).state is OrderState.ANNOUNCED
    (announced_again,) = fleet.events()
    assert announced_again.id != stale.id
    assert (announced_again.status, announced_again.not_before) == (
        EventStatus.SCHEDULED,
        fleet.now + QUARTER,
    )
    assert fleet.history(Kind.EVENT_WITHDRAWN) == [
        "could not start within the limit after 12:15:00; announced again"
    ]


def test_a_stage_still_starts_just_before_it_is_stale() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER + 30 * MINUTE - SECOND)
    assert now(fleet, order).state is OrderState.STARTED


def test_an_approval_does_not_extend_the_stale_limit() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    busy = fleet.order("web-1", Action.FREEZE)
    order = fleet.maintain()
    fleet.approve(fleet.events(busy.id)[0])
    fleet.approve(fleet.events(order.id)[0])
    fleet.pass_(QUARTER + 30 * MINUTE)
    assert fleet.events(order.id)[0].approvals == ()


def test_the_first_not_before_of_a_stage_decides_when_it_is_stale() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.turn(10 * MINUTE)
    fleet.draft.put_machine(machine("web-1"))
    fleet.advance(order.id)
    assert sorted(event.not_before for event in fleet.events()) == [NOON + QUARTER, NOON + 25 * MINUTE]
    fleet.pass_(35 * MINUTE)
    assert [event.not_before for event in fleet.events()] == [fleet.now + QUARTER]


# Rule 10: advancing is idempotent, and everything that waits has its reason


def check_nothing_changes(fleet: Fleet, order: OrderId) -> None:
    fleet.turn()
    before = fleet.draft.orders[order]
    assert fleet.advance(order) == before
    assert fleet.draft.changes().records == ()
    assert before.waiting or before.state is OrderState.STARTED


def test_advancing_twice_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), machine("db-0"))
    order = fleet.maintain()
    check_nothing_changes(fleet, order.id)
    fleet.pass_(QUARTER)
    check_nothing_changes(fleet, order.id)
    fleet.finish(order.id)
    check_nothing_changes(fleet, order.id)
    fleet.pass_(90 * SECOND)
    check_nothing_changes(fleet, order.id)


def test_a_failed_order_waits_with_its_reason() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    fleet.fail(order.id, "it burns")
    assert (now(fleet, order).state, fleet.waits(order.id)) == (
        OrderState.FAILED,
        ["web-0: failed: it burns"],
    )
    assert fleet.history(Kind.ORDER_FAILED) == ["failed: it burns"]
    check_nothing_changes(fleet, order.id)
    fleet.pass_(24 * HOUR)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED]


# Due times


def test_an_announced_order_is_due_at_its_not_before_and_then_when_it_is_stale() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    busy = fleet.order("web-1", Action.FREEZE)
    fleet.approve(fleet.events(busy.id)[0])
    order = fleet.maintain()
    assert order.due_at == NOON + QUARTER
    fleet.pass_(QUARTER)
    assert now(fleet, order).due_at == NOON + QUARTER + 30 * MINUTE


def test_a_started_order_is_due_when_its_driver_must_be_asked() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    assert now(fleet, order).due_at == fleet.now


def test_a_finished_stage_is_due_when_its_events_may_end() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    fleet.finish(order.id)
    assert now(fleet, order).due_at == fleet.now + 90 * SECOND


def test_a_degraded_host_is_announced_as_early_as_its_groups_ask() -> None:
    week, day = timedelta(days=7), timedelta(days=1)
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(degrade_notice=day)})
    order = fleet.maintain(action=Action.DEGRADE)
    assert fleet.waits(order.id) == ["host host-1: guests are notified at 2026-01-11T12:00:00Z"]
    assert order.due_at == NOON + week - day
    fleet.pass_(week - day)
    assert [event.not_before for event in fleet.events()] == [NOON + week]


def test_in_an_emergency_a_degraded_host_is_announced_at_once() -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(degrade_notice=timedelta(days=1))})
    fleet.maintain(action=Action.DEGRADE, emergency="smoke", notice=2 * MINUTE)
    assert [event.not_before for event in fleet.events()] == [NOON + 2 * MINUTE]


def test_work_that_waits_for_a_window_is_due_its_notice_before_it() -> None:
    fleet = Fleet(machine("web-0"), calendar=AFTERNOON)
    order = fleet.maintain()
    assert (order.state, order.due_at) == (OrderState.QUEUED, NOON.replace(hour=13, minute=45))


def test_an_order_that_waits_for_another_has_no_due_time() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1))
    fleet.maintain("host-1")
    assert fleet.maintain("host-2").due_at is None


# Started


def test_an_event_stays_listed_for_90_seconds() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    fleet.finish(order.id)
    fleet.pass_(89 * SECOND)
    assert len(fleet.events()) == 1
    fleet.pass_(SECOND)
    assert (fleet.events(), now(fleet, order).state) == ((), OrderState.DONE)
    assert fleet.history(Kind.EVENT_FINISHED) == ["done"]


def test_an_event_stays_listed_until_its_last_machine_is_done() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    fleet.pass_(10 * MINUTE)
    assert len(fleet.events()) == 1
    fleet.finish(order.id)
    assert fleet.events() == ()


def test_a_terminated_machine_leaves_the_fleet_with_its_event() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.order("web-0", Action.TERMINATE)
    fleet.pass_(5 * MINUTE)
    fleet.finish(order.id)
    assert fleet.machine("web-0").state is MachineState.STOPPED
    fleet.pass_(90 * SECOND)
    assert MachineId("web-0") not in fleet.draft.machines
    assert fleet.history(Kind.MACHINE_REMOVED) == ["terminated"]


# Groups that have not enabled events


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY])
def test_a_users_own_order_starts_at_once_if_its_group_has_not_enabled_events(action: Action) -> None:
    fleet = Fleet(machine("web-0"), silent=["web"], hosts=["host-2"])
    order = fleet.order("web-0", action)
    assert (order.state, fleet.events()) == (OrderState.STARTED, ())


def test_an_announced_order_is_announced_again_although_its_group_has_disabled_events() -> None:
    """Rule 12."""
    fleet = Fleet(machine("web-0"))
    order = fleet.order("web-0")
    web = fleet.draft.groups[GroupName("web")]
    fleet.draft.put_group(replace(web, enabled_at=None))
    fleet.pass_(26 * HOUR)
    (event,) = fleet.events()
    assert (event.status, event.announced_at) == (EventStatus.SCHEDULED, fleet.now)
    assert fleet.running(order.id) == ()


def test_platform_work_is_announced_to_groups_that_have_not_enabled_events() -> None:
    fleet = Fleet(machine("web-0"), silent=["web"])
    fleet.maintain()
    assert len(fleet.events()) == 1


def test_a_start_has_no_event() -> None:
    fleet = Fleet(machine("web-0", state=MachineState.STOPPED), hosts=["host-2"])
    assert (fleet.order("web-0", Action.START).state, fleet.events()) == (OrderState.STARTED, ())


def test_an_order_on_an_empty_host_is_done_at_once() -> None:
    assert Fleet(hosts=["host-1"]).maintain().state is OrderState.DONE


# Latecomers


def test_a_machine_that_arrives_on_an_announced_host_gets_its_own_event() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.turn(5 * MINUTE)
    fleet.draft.put_machine(machine("web-1"))
    fleet.advance(order.id)
    assert [(event.not_before, len(event.resources)) for event in fleet.events()] == [
        (NOON + QUARTER, 1),
        (NOON + 20 * MINUTE, 1),
    ]
    fleet.pass_(10 * MINUTE)
    assert now(fleet, order).state is OrderState.ANNOUNCED
    fleet.pass_(5 * MINUTE)
    assert [step.name for step in fleet.running(order.id)] == ["web-0", "web-1"]


def test_a_machine_of_another_update_domain_waits_for_the_next_stage() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.draft.put_machine(machine("web-1", domain=1))
    order = fleet.advance(order.id)
    assert [[step.name for step in stage.steps] for stage in order.stages] == [["web-0"], ["web-1"]]
    assert len(fleet.events()) == 1


def test_of_two_latecomers_the_lower_update_domain_joins() -> None:
    fleet = Fleet(machine("db-0"), machine("web-0", "host-2"))
    order = fleet.maintain()
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.draft.put_machine(machine("web-2", domain=2))
    order = fleet.advance(order.id)
    assert [[step.name for step in stage.steps] for stage in order.stages] == [["db-0", "web-1"], ["web-2"]]


def test_a_latecomer_that_cannot_be_announced_yet_is_named() -> None:
    fleet = Fleet(machine("db-0"), machine("web-0", "host-2"))
    fleet.order("web-0")
    order = fleet.maintain()
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.advance(order.id)
    assert fleet.waits(order.id)[-1] == "web: update domain 1 waits for domain 0"


# Deferring


def test_a_deferred_event_delays_its_order() -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(defer=HOUR)})
    order = fleet.maintain()
    lifecycle.defer(
        fleet.draft, fleet.events()[0], by=MachineName("web-0"), wanted=20 * MINUTE, policy=fleet.policy
    )
    assert now(fleet, order).due_at == NOON + 35 * MINUTE


def test_an_event_cannot_be_deferred_beyond_its_window() -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(defer=8 * HOUR)}, calendar=AFTERNOON)
    fleet.maintain()
    fleet.pass_(105 * MINUTE)
    (event,) = fleet.events()
    lifecycle.defer(fleet.draft, event, by=MachineName("web-0"), wanted=8 * HOUR, policy=fleet.policy)
    # Five minutes of work and 30 seconds of leeway before 16:00.
    assert fleet.events()[0].not_before == NOON + 4 * HOUR - 5 * MINUTE - 30 * SECOND


def test_an_event_cannot_be_deferred_beyond_the_deadline_of_its_order() -> None:
    fleet = Fleet(machine("web-0"), policies={"web": GroupPolicy(defer=8 * HOUR)})
    fleet.maintain(deadline=NOON + QUARTER)
    with pytest.raises(Conflict, match="it must start by 2026-01-05T12:15:00Z"):
        lifecycle.defer(
            fleet.draft, fleet.events()[0], by=MachineName("web-0"), wanted=HOUR, policy=fleet.policy
        )


# Pausing


def test_a_paused_order_withdraws_its_events_and_announces_nothing() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(rollout="R")
    lifecycle.pause(fleet.draft, order.id, why="by ops")
    fleet.pass_(timedelta())
    assert (now(fleet, order).state, fleet.events()) == (OrderState.QUEUED, ())
    assert fleet.waits(order.id) == ["rollout R: paused: by ops"]
    assert fleet.history(Kind.EVENT_WITHDRAWN) == ["by ops"]


def test_a_paused_order_finishes_started_work() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain(rollout="R")
    fleet.pass_(QUARTER)
    lifecycle.pause(fleet.draft, order.id, why="by ops")
    fleet.finish(order.id)
    fleet.pass_(90 * SECOND)
    assert states(now(fleet, order)) == (OrderState.STARTED, [StageState.DONE, StageState.QUEUED])


def test_a_resumed_order_is_announced_again_with_full_notice() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(rollout="R")
    fleet.turn(10 * MINUTE)
    lifecycle.pause(fleet.draft, order.id, why="by ops")
    lifecycle.resume(fleet.draft, order.id)
    assert now(fleet, order).due_at == fleet.now
    fleet.pass_(timedelta())
    assert [event.not_before for event in fleet.events()] == [NOON + 25 * MINUTE]


# Retried steps


def test_a_retried_step_waits_until_its_machine_is_free() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = fleet.maintain()
    fleet.pass_(QUARTER)
    fleet.fail(order.id)
    other = fleet.order("web-0", Action.FREEZE)
    fleet.approve(fleet.events(other.id)[0])
    mine = now(fleet, order)
    (step,) = mine.steps
    again = replace(mine.stages[0], steps=(replace(step, state=StepState.WAITING),))
    fleet.draft.put_order(replace(mine, stages=(again,), state=OrderState.STARTED))
    fleet.advance(order.id)
    assert fleet.waits(order.id) == [f"web-0: waits for order {other.id} (freeze) to finish with it"]
    fleet.finish(other.id)
    assert [step.name for step in fleet.running(order.id)] == ["web-0"]


def test_maintenance_of_a_host_may_be_a_redeploy() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = fleet.maintain(work=Work.REDEPLOY)
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    assert fleet.machine("web-0").host == "host-2"
