"""Work on a host itself: machines that leave, machines that restart with it, and the order of steps."""

from dataclasses import replace
from datetime import time, timedelta

import pytest

from forewarn.core.basic_types import (
    FOREWARN,
    Action,
    EventStatus,
    EventType,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineName,
    MachineState,
    Mobility,
    OrderState,
    Priority,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.constraints import Hold
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.model.project import Calendar, Window
from forewarn.core.orders import departures, interventions, lifecycle, reports
from forewarn.core.policy import Policy
from tests.unit.slices import HOUR, MINUTE, SECOND, Fleet, machine

HOST = HostName("host-1")
OTHERS = ("host-2", "host-3")


def live(name: str, **more: object) -> Machine:
    return machine(name, mobility=Mobility.LIVE, **more)  # type: ignore[arg-type]


def staying(name: str, **more: object) -> Machine:
    return machine(name, mobility=Mobility.NONE, **more)  # type: ignore[arg-type]


def now(fleet: Fleet, order: Order) -> Order:
    return fleet.draft.orders[order.id]


def stages(fleet: Fleet, order: Order) -> list[tuple[str, str]]:
    return [(stage.kind.value, stage.state.value) for stage in now(fleet, order).stages]


def moving(fleet: Fleet, order: Order) -> list[str]:
    return [step.name for step in fleet.running(order.id)]


def evacuated(*machines: Machine, **more: object) -> tuple[Fleet, Order]:
    """Evacuate a host as far as possible."""
    fleet = Fleet(*machines, hosts=("host-1", *OTHERS))
    order = fleet.service(**more)  # type: ignore[arg-type]
    fleet.pass_(15 * MINUTE)
    while fleet.running(order.id) and now(fleet, order).stages[0].state is not StageState.DONE:
        fleet.finish(order.id)
        fleet.pass_(2 * MINUTE)
    return fleet, order


# Machines that leave and machines that stay


def test_machines_that_can_leave_do_so_and_the_others_restart_with_their_host() -> None:
    fleet = Fleet(live("a-0"), machine("b-0"), staying("c-0"), hosts=OTHERS)
    order = fleet.service()
    kinds = [
        (stage.kind, [(step.name, step.work, step.moves) for step in stage.steps]) for stage in order.stages
    ]
    assert kinds == [
        (StageKind.EVACUATE, [("a-0", Work.FREEZE, True), ("b-0", Work.REDEPLOY, True)]),
        (StageKind.HOST, [("c-0", Work.REBOOT, False)]),
    ]
    assert {event.type for event in fleet.events()} == {EventType.FREEZE, EventType.REDEPLOY}
    assert order.state is OrderState.ANNOUNCED


def test_in_place_all_machines_restart_with_their_host() -> None:
    order = Fleet(live("a-0"), machine("b-0")).service(mode=ServiceMode.IN_PLACE)
    assert [(stage.kind, len(stage.steps)) for stage in order.stages] == [(StageKind.HOST, 2)]


def test_the_host_is_worked_on_after_its_machines_have_left() -> None:
    fleet, order = evacuated(live("a-0"), machine("b-0"))
    assert {fleet.machine(name).host for name in ("a-0", "b-0")} <= {"host-2", "host-3"}
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "started")]
    assert [step.task for step in now(fleet, order).running_host_steps] == [HostTask.WORK]
    fleet.finish_host(order.id)
    assert now(fleet, order).state is OrderState.DONE


def test_machines_that_stay_are_announced_when_the_others_have_left_and_restart_once() -> None:
    fleet, order = evacuated(machine("b-0"), staying("c-0"))
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "announced")]
    (event,) = fleet.events()
    assert (event.type, event.not_before - event.announced_at) == (EventType.REBOOT, 15 * MINUTE)
    assert not now(fleet, order).running_host_steps
    fleet.pass_(15 * MINUTE)
    assert fleet.machine("c-0").state is MachineState.RESTARTING
    fleet.pass_(5 * MINUTE)
    assert fleet.machine("c-0").state is MachineState.RESTARTING
    fleet.finish_host(order.id)
    assert fleet.machine("c-0").state is MachineState.RUNNING
    assert fleet.machine("c-0").host == HOST
    assert now(fleet, order).state is OrderState.DONE


def test_an_empty_host_is_worked_on_at_once() -> None:
    fleet = Fleet(hosts=["host-1"])
    order = fleet.service()
    assert [step.task for step in order.running_host_steps] == [HostTask.WORK]
    assert order.state is OrderState.STARTED
    fleet.finish_host(order.id)
    assert now(fleet, order).state is OrderState.DONE


def test_machines_return_on_request_with_their_own_notice() -> None:
    fleet, order = evacuated(live("a-0"), machine("b-0"), returning=True)
    fleet.finish_host(order.id)
    assert stages(fleet, order)[-1] == ("return", "announced")
    assert all(event.not_before - event.announced_at >= 10 * MINUTE for event in fleet.events())
    fleet.pass_(15 * MINUTE)
    fleet.turn(2 * MINUTE)
    fleet.finish(order.id)
    assert {fleet.machine(name).host for name in ("a-0", "b-0")} == {HOST}
    assert now(fleet, order).state is OrderState.DONE
    attempts = [[step.attempt for step in stage.steps] for stage in now(fleet, order).stages]
    assert attempts == [[1, 1], [], [2, 2]]


def test_without_moved_machines_there_is_no_return() -> None:
    fleet, order = evacuated(returning=True)
    fleet.finish_host(order.id)
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "done")]
    assert now(fleet, order).state is OrderState.DONE


def test_no_machine_returns_to_a_host_that_an_operator_has_closed() -> None:
    fleet, order = evacuated(machine("b-0"), returning=True)
    fleet.maintain(action=Action.CORDON)
    fleet.finish_host(order.id)
    assert fleet.waits(order.id) == ["host host-1: is cordoned: no machine returns to it"]
    fleet.maintain(action=Action.UNCORDON)
    fleet.advance(order.id)
    assert stages(fleet, order)[-1] == ("return", "announced")


def test_bare_metal_is_serviced_in_place() -> None:
    fleet = Fleet(staying("host-1"))
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], bare_metal=True))
    order = fleet.service(returning=True)
    assert (order.terms.mode, order.terms.returning) == (ServiceMode.IN_PLACE, False)
    assert [(step.name, step.work) for step in order.steps] == [("host-1", Work.REBOOT)]


# Slots


def test_machines_leave_a_few_at_a_time() -> None:
    fleet = Fleet(*(machine(f"web-{number}") for number in range(5)), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED]
    assert moving(fleet, order) == ["web-0", "web-1"]
    fleet.finish(order.id)
    assert moving(fleet, order) == ["web-2", "web-3"]
    fleet.finish(order.id)
    fleet.finish(order.id)
    assert stages(fleet, order)[0] == ("evacuate", "done")


def test_a_host_declares_how_many_machines_leave_at_once() -> None:
    fleet = Fleet(*(machine(f"web-{number}") for number in range(5)), hosts=OTHERS)
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], at_once=4))
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    assert len(moving(fleet, order)) == 4


def test_an_external_driver_moves_any_number_of_machines_at_once() -> None:
    fleet = Fleet(*(machine(f"web-{number}") for number in range(5)), hosts=OTHERS)
    order = fleet.service(driver="external")
    fleet.pass_(10 * MINUTE)
    assert len(moving(fleet, order)) == 5


def test_each_event_gets_the_time_of_its_slot() -> None:
    fleet = Fleet(*(machine(f"m{number}-0") for number in range(6)), hosts=OTHERS)
    fleet.service()
    ahead = sorted((event.not_before - event.announced_at) // MINUTE for event in fleet.events())
    assert ahead == [10, 10, 14, 14, 18, 18]


def test_memory_determines_the_expected_time_of_a_move() -> None:
    large = machine("a-0", resources={"memory": 256})
    fleet = Fleet(large, machine("b-0"), machine("c-0"), machine("d-0"), hosts=OTHERS)
    fleet.service()
    ahead = sorted((event.not_before - event.announced_at) // MINUTE for event in fleet.events())
    assert ahead == [10, 10, 14, 18]  # b, c and d move one after another beside it


def test_memory_in_wrong_units_does_not_block_a_host_for_years() -> None:
    fleet = Fleet(*(machine(f"{name}-0", resources={"memory": 10**15}) for name in "abcdef"), hosts=OTHERS)
    fleet.service()
    assert max(event.not_before - event.announced_at for event in fleet.events()) < timedelta(days=4)


def test_postponements_behind_overdue_moves_become_rarer() -> None:
    fleet = Fleet(*(machine(f"m{number}-0") for number in range(3)), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    assert len(moving(fleet, order)) == 2
    for _ in range(24 * 60):
        fleet.pass_(MINUTE)
    told = fleet.history(Kind.EVENT_POSTPONED)
    assert "1 m later" in told[1]
    assert "15 m later" in told[-1]
    assert 18 * 4 <= len(told) <= 6 * 60 + 18 * 4


def test_forty_moves_of_four_minutes_two_at_once_do_not_become_stale() -> None:
    """Rule 11 applies to each event: the last one waits for more than an hour, as announced."""
    fleet = Fleet(*(live(f"m{number:02}-0") for number in range(40)), hosts=OTHERS)
    order = fleet.service()
    for _ in range(25):
        fleet.pass_(4 * MINUTE)
        fleet.finish(order.id)
        assert len(moving(fleet, order)) <= 2
    assert fleet.history(Kind.EVENT_WITHDRAWN) == []
    assert stages(fleet, order)[0] == ("evacuate", "done")
    assert all(each.host != HOST for each in fleet.draft.machines.values())


def test_slow_moves_postpone_later_events() -> None:
    fleet = Fleet(*(machine(f"m{number}-0") for number in range(3)), hosts=OTHERS)
    order = fleet.service()
    last = fleet.events()[-1]
    fleet.pass_(10 * MINUTE)
    fleet.pass_(4 * MINUTE)
    (later,) = (event for event in fleet.events() if event.id == last.id)
    assert later.not_before > last.not_before == fleet.now
    assert len(fleet.history(Kind.EVENT_POSTPONED)) == 1
    assert "waits for its turn, after m0-0, m1-0" in fleet.history(Kind.EVENT_POSTPONED)[0]
    for _ in range(40):
        fleet.pass_(MINUTE)
    assert fleet.history(Kind.EVENT_WITHDRAWN) == []
    fleet.finish(order.id)
    fleet.pass_(5 * MINUTE)
    assert moving(fleet, order) == ["m2-0"]


def test_an_approved_event_starts_once_a_slot_is_free() -> None:
    fleet = Fleet(*(machine(f"m{number}-0") for number in range(3)), hosts=OTHERS)
    order = fleet.service()
    for event in fleet.events():
        fleet.approve(event, by=event.resources[0].name)
    assert moving(fleet, order) == ["m0-0", "m1-0"]
    assert fleet.history(Kind.EVENT_POSTPONED) == []
    fleet.finish(order.id)
    assert moving(fleet, order) == ["m2-0"]


def test_another_update_domain_waits_until_the_first_has_left() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=OTHERS)
    order = fleet.service()
    assert [event.update_domain for event in fleet.events()] == [0]
    assert "web: update domain 1 waits for domain 0" in fleet.waits(order.id)
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    assert [event.update_domain for event in fleet.events()] == [1]
    assert stages(fleet, order)[0] == ("evacuate", "started")


def test_together_applies_to_the_host_work_and_not_to_moves() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=OTHERS)
    fleet.service(together="no time")
    assert [event.update_domain for event in fleet.events()] == [0]
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_a_guest_defers_only_its_own_event_of_an_evacuation() -> None:
    policies = {"a": GroupPolicy(defer=HOUR)}
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS, policies=policies)
    fleet.service()
    mine, _ = fleet.events()
    lifecycle.defer(fleet.draft, mine, by=MachineName("a-0"), wanted=5 * MINUTE, policy=fleet.policy)
    after = fleet.events()
    assert [event.not_before - mine.announced_at for event in after] == [15 * MINUTE, 10 * MINUTE]


def test_a_stale_event_of_an_evacuation_is_withdrawn_alone_and_announced_again() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.approve(fleet.events()[0], by="a-0")
    assert moving(fleet, order) == ["a-0"]
    fleet.turn(HOUR)
    fleet.advance(order.id)
    (told,) = (event for event in fleet.events() if event.status is EventStatus.SCHEDULED)
    assert (told.announced_at, len(fleet.history(Kind.EVENT_WITHDRAWN))) == (fleet.now, 1)
    assert moving(fleet, order) == ["a-0"]


# Machines that arrive and leave


def arrives(fleet: Fleet, name: str, **more: object) -> None:
    new = machine(name, **more)  # type: ignore[arg-type]
    fleet.draft.put_machine(new)
    if new.group not in fleet.draft.groups:
        known = next(iter(fleet.draft.groups.values()))
        fleet.draft.put_group(replace(known, name=new.group))


def test_a_machine_that_arrives_during_an_evacuation_leaves_with_its_own_event() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    arrives(fleet, "b-0")
    fleet.advance(order.id)
    late = fleet.events()[-1]
    assert (late.resources[0].name, late.not_before - fleet.now) == ("b-0", 10 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    assert fleet.machine("b-0").host != HOST
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "started")]


def test_an_evacuation_restarts_for_a_machine_that_arrives_before_the_work_is_announced() -> None:
    fleet, order = evacuated(machine("a-0"), staying("b-0"))
    lifecycle.pause(fleet.draft, order.id, why="lunch")
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "queued")]
    arrives(fleet, "c-0")
    lifecycle.resume(fleet.draft, order.id)
    fleet.advance(order.id)
    assert stages(fleet, order) == [("evacuate", "started"), ("host", "queued")]
    assert [event.resources[0].name for event in fleet.events()] == ["c-0"]


def test_a_machine_that_arrives_after_the_announcement_is_announced_and_restarts_too() -> None:
    fleet = Fleet(staying("a-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.turn(5 * MINUTE)
    arrives(fleet, "b-0")
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events()] == ["a-0", "b-0"]
    fleet.pass_(10 * MINUTE)
    assert stages(fleet, order)[-1] == ("host", "announced")
    fleet.pass_(5 * MINUTE)
    assert sorted(moving(fleet, order)) == ["a-0", "b-0"]


def test_a_machine_that_arrives_during_the_work_is_not_announced() -> None:
    fleet = Fleet(hosts=["host-1"])
    order = fleet.service()
    fleet.draft.put_group(Fleet(machine("b-0")).draft.groups["b"])  # type: ignore[index]
    fleet.draft.put_machine(machine("b-0"))
    fleet.advance(order.id)
    assert fleet.events() == ()
    assert not now(fleet, order).steps


def test_a_machine_that_left_and_came_back_restarts_with_the_host() -> None:
    fleet, order = evacuated(machine("a-0"), staying("b-0"))
    fleet.draft.put_machine(replace(fleet.machine("a-0"), host=HOST))
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events()] == ["b-0", "a-0"]
    restarts = now(fleet, order).stages[1].steps
    assert [(step.name, step.work, step.attempt) for step in restarts] == [
        ("b-0", Work.REBOOT, 1),
        ("a-0", Work.REBOOT, 2),
    ]


def test_a_machine_moved_outside_forewarn_is_done() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS)
    order = fleet.service()
    gone = fleet.machine("a-0")
    departures.remove_from_host_orders(fleet.draft, gone, why="moved to host-2")
    fleet.draft.put_machine(replace(gone, host=HostName("host-2")))
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events()] == ["b-0"]
    assert [step.name for step in now(fleet, order).steps if step.state is not StepState.MOOT] == ["b-0"]


def test_a_machine_terminated_during_an_evacuation_leaves_it() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.order("a-0", Action.TERMINATE)
    fleet.advance(order.id)
    mine = [event.resources[0].name for event in fleet.events(order.id)]
    assert mine == ["b-0"]


def test_an_evicted_machine_does_not_return() -> None:
    fleet, order = evacuated(machine("a-0"), machine("b-0"), returning=True)
    fleet.finish_host(order.id)
    fleet.order("a-0", Action.TERMINATE)
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events(order.id)] == ["b-0"]


def test_a_host_that_fails_during_an_evacuation_supersedes_it() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.maintain(action=Action.FAIL)
    assert now(fleet, order).state is OrderState.CANCELLED
    assert fleet.draft.hosts[HOST].state is HostState.FAILED
    assert fleet.draft.hosts[HOST].cordoned_for is None


# Refusals, and work done together


def test_several_update_domains_that_would_restart_together_are_refused_by_name() -> None:
    three = staying("web-0"), staying("web-1", domain=1), machine("web-2", domain=2)
    with pytest.raises(
        Conflict,
        match=r"0 and 1 of group web \(web-0 of domain 0, web-1 of domain 1\).*Move some away, treat",
    ):
        Fleet(*three, hosts=OTHERS).service()
    with pytest.raises(Conflict, match=r"web-2 of domain 2\).*Move some away, evacuate it"):
        Fleet(*three, hosts=OTHERS).service(mode=ServiceMode.IN_PLACE)


def test_with_together_several_update_domains_restart_and_that_is_recorded() -> None:
    fleet = Fleet(staying("web-0"), staying("web-1", domain=1), hosts=OTHERS)
    order = fleet.service(together="no other way")
    assert len(fleet.events()) == 2
    assert any("disturbed together" in why for why in fleet.history(Kind.PROMISE_BROKEN))
    fleet.pass_(15 * MINUTE)
    assert len(moving(fleet, order)) == 2


def test_a_second_order_on_the_host_is_refused() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS)
    fleet.service()
    with pytest.raises(Conflict, match="has order"):
        fleet.service()


# Cordons


def test_a_host_is_cordoned_from_the_announcement_to_the_end_of_the_work() -> None:
    fleet, order = evacuated(machine("a-0"))
    assert (fleet.draft.hosts[HOST].state, fleet.draft.hosts[HOST].cordoned_for) == (
        HostState.CORDONED,
        order.id,
    )
    fleet.finish_host(order.id)
    assert (fleet.draft.hosts[HOST].state, fleet.draft.hosts[HOST].cordoned_for) == (HostState.OK, None)


def test_a_host_that_an_operator_cordoned_before_stays_cordoned() -> None:
    fleet = Fleet(hosts=["host-1"])
    fleet.maintain(action=Action.CORDON)
    order = fleet.service()
    fleet.finish_host(order.id)
    assert fleet.draft.hosts[HOST].state is HostState.CORDONED


def test_a_host_that_an_operator_cordons_during_the_work_stays_cordoned() -> None:
    fleet, order = evacuated(machine("a-0"))
    fleet.maintain(action=Action.CORDON)
    fleet.finish_host(order.id)
    assert fleet.draft.hosts[HOST].state is HostState.CORDONED


@pytest.mark.parametrize("minutes", [0, 12])
def test_cancelling_an_order_uncordons_its_host(minutes: int) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=OTHERS)
    order = fleet.service()
    if minutes:
        fleet.pass_(10 * MINUTE)
        with pytest.raises(Conflict, match="too late"):
            interventions.cancel(fleet.draft, order.id, by="test")
        fleet.finish(order.id)
        fleet.pass_(2 * MINUTE)
    interventions.cancel(fleet.draft, order.id, by="test")
    assert fleet.draft.hosts[HOST].state is HostState.OK
    assert fleet.events() == ()


def test_an_order_with_work_under_way_cannot_be_cancelled() -> None:
    fleet, order = evacuated(machine("a-0"))
    with pytest.raises(Conflict, match="too late"):
        interventions.cancel(fleet.draft, order.id, by="test")


# Failures, pauses


def test_a_failed_move_is_retried_and_the_others_go_on() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS, policy=Policy(move_retries=0))
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    fleet.fail(order.id)
    assert now(fleet, order).state is OrderState.FAILED
    assert fleet.waits(order.id) == ["a-0: failed: it burns", "b-0: failed: it burns"]
    interventions.retry(fleet.draft, order.id, by="test", policy=fleet.policy)
    assert moving(fleet, order) == ["a-0", "b-0"]
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    assert stages(fleet, order)[1] == ("host", "started")


def test_an_abandoned_evacuation_uncordons_its_host() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS, policy=Policy(move_retries=0))
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    fleet.fail(order.id)
    interventions.abandon(fleet.draft, order.id, by="test")
    assert (now(fleet, order).state, fleet.events()) == (OrderState.FAILED, ())
    assert fleet.draft.hosts[HOST].state is HostState.OK


def test_a_hold_that_withdraws_machine_after_machine_counts_as_one_withdrawal() -> None:
    fleet = Fleet(*(live(f"g{number}-0") for number in range(6)), hosts=OTHERS)
    order = fleet.service()
    fleet.draft.holds["H"] = Hold(id="H", by="ops", reason="a storm", at=fleet.now)
    for _ in range(12):
        fleet.pass_(5 * MINUTE)
    late = fleet.history(Kind.EVENT_WITHDRAWN)
    assert (len(late), len(set(late))) == (6, 3)  # they were due at three times
    assert not fleet.draft.orders[order.id].stuck
    del fleet.draft.holds["H"]
    fleet.pass_(MINUTE)
    assert (len(fleet.events()), fleet.draft.orders[order.id].stuck) == (6, False)


def announced_three_times() -> tuple[Fleet, Order]:
    """The server is down while a machine could move twice."""
    fleet = Fleet(live("a-0"), hosts=OTHERS)
    order = fleet.service()
    for _ in range(2):
        assert not fleet.draft.orders[order.id].stuck
        fleet.pass_(45 * MINUTE)
    return fleet, order


def test_a_machine_announced_three_times_without_a_move_is_stuck() -> None:
    fleet, order = announced_three_times()
    assert fleet.waits(order.id)[0] == (
        f"order {order.id}: announced 3 times without a start; see what it waits for, or cancel it"
    )
    fleet.approve(fleet.events()[0], by="a-0")
    assert not fleet.draft.orders[order.id].stuck
    assert [step.withdrawals for step in fleet.draft.orders[order.id].steps] == [0]


def test_resuming_an_evacuation_resets_the_counts_of_announcements() -> None:
    fleet, order = announced_three_times()
    lifecycle.pause(fleet.draft, order.id, why="stuck")
    lifecycle.resume(fleet.draft, order.id)
    fleet.advance(order.id)
    assert (len(fleet.events()), fleet.draft.orders[order.id].stuck) == (1, False)


def test_a_pause_withdraws_unstarted_events_and_moves_go_on() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.approve(fleet.events()[0], by="a-0")
    lifecycle.pause(fleet.draft, order.id, why="lunch")
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events()] == ["a-0"]
    assert moving(fleet, order) == ["a-0"]
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    assert stages(fleet, order)[0] == ("evacuate", "started")
    assert "paused: lunch" in fleet.waits(order.id)[0]
    lifecycle.resume(fleet.draft, order.id)
    fleet.advance(order.id)
    assert [event.resources[0].name for event in fleet.events()] == ["b-0"]


def test_a_pause_before_anything_has_started_queues_the_evacuation() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS)
    order = fleet.service()
    lifecycle.pause(fleet.draft, order.id, why="lunch")
    fleet.advance(order.id)
    assert (stages(fleet, order)[0], fleet.events()) == (("evacuate", "queued"), ())


def test_planning_twice_changes_nothing_the_second_time() -> None:
    fleet = Fleet(live("a-0"), machine("web-0"), machine("web-1", domain=1), staying("c-0"), hosts=OTHERS)
    order = fleet.service(returning=True)
    for _ in range(90):
        fleet.pass_(MINUTE)
        if order.id not in fleet.draft.orders:
            return
        again = now(fleet, order)
        assert fleet.advance(order.id) == again
        fleet.finish(order.id)
        fleet.finish_host(order.id)
    raise AssertionError(stages(fleet, order))


# Finished events that stay listed

LINGER = 90 * SECOND


def started_moves(*machines: Machine) -> tuple[Fleet, Order]:
    fleet = Fleet(*machines, hosts=("host-1", *OTHERS))
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    return fleet, order


def test_an_empty_host_is_worked_on_while_events_of_its_machines_are_listed() -> None:
    fleet, order = started_moves(machine("a-0"))
    fleet.finish(order.id)
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "started")]
    assert running_on_host(fleet, order) == ["work"]
    (event,) = fleet.events()
    assert event.started_at == fleet.now


def test_an_order_waits_until_its_last_events_may_end() -> None:
    fleet, order = started_moves(machine("a-0"))
    fleet.finish(order.id)
    (event,) = fleet.events()
    fleet.finish_host(order.id)
    assert now(fleet, order).open
    said = "is done, and stays listed until 2026-01-05T12:16:30Z so that slow pollers see it"
    assert fleet.waits(order.id) == [f"{event.id}: {said}"]
    assert now(fleet, order).waiting[0].until == now(fleet, order).due_at == fleet.now + LINGER
    fleet.pass_(LINGER - SECOND)
    assert fleet.events() == (event,)
    fleet.pass_(SECOND)
    assert (order.id in fleet.draft.orders and now(fleet, order).open, fleet.events()) == (False, ())


def test_a_staying_machine_waits_for_the_events_of_another_domain_of_its_group() -> None:
    fleet, order = started_moves(machine("web-0"), staying("web-1", domain=1))
    fleet.finish(order.id)
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "queued")]
    assert fleet.waits(order.id) == ["web: update domain 1 waits for domain 0"]
    fleet.pass_(LINGER)
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "announced")]


def test_restarted_machines_wait_until_their_events_may_end() -> None:
    fleet, order = started_moves(staying("a-0"))
    fleet.finish_host(order.id)
    (event,) = fleet.events()
    assert fleet.waits(order.id)[0].startswith(f"{event.id}: is done, and stays listed until")


# Host steps


def hooked(
    *machines: Machine, hooks: frozenset[HostTask] = frozenset(HostTask), **terms: object
) -> tuple[Fleet, Order]:
    fleet = Fleet(*machines, hosts=("host-1", *OTHERS), policy=Policy(hooks=hooks))
    return fleet, fleet.service(**terms)  # type: ignore[arg-type]


def running_on_host(fleet: Fleet, order: Order) -> list[str]:
    return [step.task.value for step in now(fleet, order).running_host_steps]


def test_hooks_run_one_after_another() -> None:
    fleet, order = hooked(machine("a-0"))
    assert {step.driver for step in order.host_steps} == {"hook"}
    assert running_on_host(fleet, order) == ["cordon"]
    fleet.pass_(10 * MINUTE)
    assert "host host-1: is not cordoned yet: its hook has not ended" in fleet.waits(order.id)
    assert not fleet.running(order.id)
    fleet.finish_host(order.id, HostTask.CORDON)
    assert moving(fleet, order) == ["a-0"]
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    for task in (HostTask.BEFORE, HostTask.WORK, HostTask.AFTER):
        assert running_on_host(fleet, order) == [task.value]
        assert fleet.draft.hosts[HOST].state is HostState.CORDONED
        fleet.finish_host(order.id, task)
    assert running_on_host(fleet, order) == ["health"]
    fleet.finish_host(order.id, HostTask.HEALTH)
    assert running_on_host(fleet, order) == ["uncordon"]
    assert fleet.draft.hosts[HOST].state is HostState.CORDONED
    assert now(fleet, order).state is OrderState.STARTED
    fleet.finish_host(order.id, HostTask.UNCORDON)
    assert fleet.draft.hosts[HOST].state is HostState.OK
    assert now(fleet, order).state is OrderState.DONE


def test_the_driver_of_the_host_work_can_be_named() -> None:
    _, order = hooked(host_driver="external", driver="simulated")
    drivers = {step.task: step.driver for step in order.host_steps}
    assert (drivers[HostTask.WORK], drivers[HostTask.BEFORE]) == ("external", "hook")


def test_failed_host_work_is_retried_and_its_machines_wait() -> None:
    fleet, order = hooked(staying("a-0"), hooks=frozenset({HostTask.WORK}))
    fleet.pass_(15 * MINUTE)
    (step,) = now(fleet, order).running_host_steps
    reports.step_failed(fleet.draft, AttemptId(order.id, step.subject, 1), why="no power")
    fleet.advance(order.id)
    assert now(fleet, order).state is OrderState.FAILED
    assert fleet.machine("a-0").state is MachineState.RESTARTING
    assert fleet.waits(order.id) == ["work of host host-1: failed: no power"]
    interventions.retry(fleet.draft, order.id, by="test", policy=fleet.policy)
    (step,) = now(fleet, order).running_host_steps
    assert step.attempt == 2
    fleet.finish_host(order.id)
    assert fleet.machine("a-0").state is MachineState.RUNNING


@pytest.mark.parametrize("by", ["olga", FOREWARN])
def test_a_host_with_half_done_work_takes_no_machines(by: str) -> None:
    fleet, order = evacuated(machine("a-0"))
    reports.step_failed(fleet.draft, AttemptId(order.id, "host/work", 1), why="its board is broken")
    fleet.advance(order.id)
    interventions.abandon(fleet.draft, order.id, by=by)
    host = fleet.draft.hosts[HOST]
    assert (host.state, host.cordoned_for) == (HostState.CORDONED, None)


def test_a_hook_that_fails_after_the_work_keeps_the_order_open() -> None:
    fleet, order = hooked(hooks=frozenset({HostTask.HEALTH}))
    fleet.finish_host(order.id)
    (step,) = now(fleet, order).running_host_steps
    reports.step_failed(fleet.draft, AttemptId(order.id, step.subject, 1), why="fans")
    fleet.advance(order.id)
    assert now(fleet, order).state is OrderState.FAILED
    assert fleet.waits(order.id) == ["health of host host-1: failed: fans"]


def test_a_rollout_checks_the_health_of_hosts_after_any_work() -> None:
    fleet = Fleet(machine("a-0"), hosts=OTHERS, policy=Policy(hooks=frozenset(HostTask)))
    assert fleet.maintain("host-2").state is OrderState.DONE
    order = fleet.maintain(rollout="R")
    assert [(step.task, step.driver) for step in order.host_steps] == [(HostTask.HEALTH, "hook")]
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    assert now(fleet, order).running_host_steps == ()
    fleet.pass_(2 * MINUTE)
    (step,) = now(fleet, order).running_host_steps
    reports.step_failed(fleet.draft, AttemptId(order.id, step.subject, 1), why="fans")
    fleet.advance(order.id)
    assert fleet.waits(order.id) == ["health of host host-1: failed: fans"]
    interventions.retry(fleet.draft, order.id, by="test", policy=fleet.policy)
    fleet.finish_host(order.id, HostTask.HEALTH)
    assert now(fleet, order).state is OrderState.DONE


def test_abandoning_work_on_a_host_leaves_its_machines_running() -> None:
    fleet = Fleet(staying("a-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    interventions.abandon(fleet.draft, order.id, by="ann")
    (step,) = now(fleet, order).running_host_steps
    reports.step_cancelled(fleet.draft, AttemptId(order.id, step.subject, 1))
    fleet.advance(order.id)
    assert now(fleet, order).state is OrderState.FAILED
    assert fleet.machine("a-0").state is MachineState.RUNNING
    assert (fleet.draft.hosts[HOST].state, fleet.events()) == (HostState.CORDONED, ())


def restarted_by_its_owner() -> tuple[Fleet, Order, Order]:
    """Restart a machine with its host while an order of its owner waits for it."""
    fleet = Fleet(staying("a-0"), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    restart = fleet.order("a-0")
    (event,) = fleet.events(restart.id)
    fleet.approve(event, "a-0")
    fleet.advance(restart.id)
    assert now(fleet, restart).due_at != fleet.now
    return fleet, order, restart


def test_an_order_that_waits_for_a_machine_goes_on_once_that_has_restarted_with_its_host() -> None:
    fleet, order, restart = restarted_by_its_owner()
    reports.step_done(fleet.draft, AttemptId(order.id, "host/work", 1))
    fleet.advance(order.id)
    assert now(fleet, restart).due_at == fleet.now
    assert fleet.advance(restart.id).state is OrderState.STARTED


def test_an_order_that_waits_for_a_machine_goes_on_once_the_host_work_is_abandoned() -> None:
    fleet, order, restart = restarted_by_its_owner()
    interventions.abandon(fleet.draft, order.id, by="ann")
    reports.step_cancelled(fleet.draft, AttemptId(order.id, "host/work", 1))
    fleet.advance(order.id)
    assert now(fleet, restart).due_at == fleet.now
    assert fleet.advance(restart.id).state is OrderState.STARTED


def test_a_host_that_is_restored_during_the_work_is_not_changed_again() -> None:
    fleet, order = evacuated(machine("a-0"))
    host = fleet.draft.hosts[HOST]
    fleet.draft.put_host(replace(host, state=HostState.DEGRADED))
    fleet.finish_host(order.id)
    assert (fleet.draft.hosts[HOST].state, fleet.draft.hosts[HOST].cordoned_for) == (HostState.DEGRADED, None)


def test_an_emergency_does_not_add_slot_times_to_its_notice() -> None:
    fleet = Fleet(*(machine(f"m{number}-0") for number in range(4)), hosts=OTHERS)
    order = fleet.service(emergency="fire", notice=MINUTE)
    assert {event.not_before - event.announced_at for event in fleet.events()} == {MINUTE}
    fleet.pass_(MINUTE)
    assert moving(fleet, order) == ["m0-0", "m1-0"]


def test_no_return_begins_to_a_closed_host() -> None:
    fleet, order = evacuated(machine("a-0"), returning=True)
    fleet.finish_host(order.id)
    fleet.maintain(action=Action.CORDON)
    fleet.pass_(10 * MINUTE)
    assert not fleet.running(order.id)
    assert "host host-1: is cordoned: no machine returns to it" in fleet.waits(order.id)


def test_a_returning_machine_waits_while_its_host_is_closed() -> None:
    fleet, order = evacuated(*(machine(f"web-{number}") for number in range(3)), returning=True)
    fleet.finish_host(order.id)
    fleet.pass_(10 * MINUTE)
    assert moving(fleet, order) == ["web-0", "web-1"]
    fleet.maintain(action=Action.CORDON)
    fleet.finish(order.id)
    assert moving(fleet, order) == []
    assert fleet.waits(order.id) == ["host host-1: is cordoned: no machine returns to it"]


def test_a_moved_machine_needs_no_slot() -> None:
    fleet = Fleet(*(machine(f"web-{number}") for number in range(3)), hosts=OTHERS)
    order = fleet.service()
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    arrives(fleet, "b-0")
    fleet.advance(order.id)
    late = fleet.events()[-1]
    assert late.not_before - fleet.now == 10 * MINUTE


def test_windows_bind_moves_by_their_expected_time() -> None:
    night = Calendar(windows=(Window(days=frozenset(range(7)), start=time(22), length=10 * MINUTE),))
    with pytest.raises(Invalid, match="no window with room"):
        Fleet(*(machine(f"web-{number}") for number in range(9)), hosts=OTHERS, calendar=night).service()
    fleet = Fleet(machine("web-0"), hosts=OTHERS, calendar=night)
    order = fleet.service()
    assert order.due_at == fleet.now.replace(hour=21, minute=50)
    assert "outside the window" in fleet.waits(order.id)[0]


def test_between_evacuation_and_work_a_host_stays_empty_until_its_window_opens() -> None:
    night = Calendar(windows=(Window(days=frozenset(range(7)), start=time(12), length=40 * MINUTE),))
    fleet = Fleet(machine("a-0"), staying("b-0"), hosts=OTHERS, calendar=night)
    order = fleet.service(expected=20 * MINUTE)
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    assert stages(fleet, order) == [("evacuate", "done"), ("host", "queued")]
    assert "outside the window" in fleet.waits(order.id)[0]
    assert fleet.draft.hosts[HOST].state is HostState.CORDONED
    assert now(fleet, order).due_at is not None


def test_a_machine_does_not_return_from_a_host_that_has_failed() -> None:
    fleet, order = evacuated(live("a-0"), returning=True)
    fleet.finish_host(order.id)
    fleet.pass_(15 * MINUTE)
    assert moving(fleet, order) == ["a-0"]
    failed = fleet.maintain(f"{fleet.machine('a-0').host}", Action.FAIL)
    assert moving(fleet, order) == []
    assert [step.name for step in failed.steps] == ["a-0"]


def test_no_machine_returns_from_a_failed_host_before_it_is_fenced() -> None:
    fleet, order = evacuated(machine("b-0"), machine("c-0"), returning=True)
    fleet.finish_host(order.id)
    fleet.maintain(f"{fleet.machine('b-0').host}", Action.FAIL)
    fleet.pass_(20 * MINUTE)
    assert "b-0" not in moving(fleet, order)


def test_no_machine_returns_from_a_lost_host() -> None:
    fleet, order = evacuated(machine("b-0"), returning=True)
    fleet.finish_host(order.id)
    host = fleet.draft.hosts[HostName(f"{fleet.machine('b-0').host}")]
    fleet.draft.put_host(replace(host, state=HostState.LOST))
    fleet.pass_(20 * MINUTE)
    assert moving(fleet, order) == []
    fleet.draft.put_host(host)
    fleet.advance(order.id)
    assert moving(fleet, order) == ["b-0"]


def test_an_approved_event_without_a_slot_is_due_at_its_not_before() -> None:
    fleet = Fleet(*(machine(f"{group}-0") for group in "abc"), hosts=["host-2"])
    order = fleet.service()
    for event in fleet.events(order.id):
        fleet.approve(event)
    waits = next(each for each in fleet.events(order.id) if each.status is EventStatus.SCHEDULED)
    due_at = now(fleet, order).due_at
    assert due_at is not None
    assert due_at <= waits.not_before


def test_unstarted_events_of_an_abandoned_order_end_at_once() -> None:
    fleet = Fleet(*(machine(f"{group}-0") for group in "abc"), hosts=["host-2"])
    order = fleet.service()
    for event in fleet.events(order.id):
        fleet.approve(event)
    interventions.abandon(fleet.draft, order.id, by="olga")
    assert {event.status for event in fleet.events(order.id)} == {EventStatus.STARTED}
    assert len(fleet.events(order.id)) == len(moving(fleet, order)) == 2


def test_a_machine_whose_eviction_is_cancelled_returns() -> None:
    fleet, order = evacuated(machine("a-0"), machine("b-0", priority=Priority.SPOT), returning=True)
    fleet.finish_host(order.id)
    leaving = fleet.order("b-0", Action.EVICT)
    fleet.advance(order.id)
    fleet.turn()
    fleet.draft.put_order(replace(now(fleet, order), due_at=None))
    interventions.cancel(fleet.draft, leaving.id, by="olga")
    assert now(fleet, order).due_at == fleet.draft.now
