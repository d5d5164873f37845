"""Orders on machines and hosts: what is accepted, refused and superseded."""

from dataclasses import replace
from datetime import time, timedelta

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    HostName,
    HostState,
    Kind,
    MachineState,
    OrderState,
    Priority,
    Source,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict, Invalid, LimitReached
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Calendar, Window
from forewarn.core.orders import interventions, order_requests
from tests.helpers.service.refused import refused
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

SHORT = Calendar(windows=(Window(days=frozenset({0}), start=time(20), length=timedelta(minutes=10)),))


def spot(name: str, host: str = "host-1") -> Fleet:
    return Fleet(machine(name, host, priority=Priority.SPOT))


# Machines


def test_an_order_records_its_caller_and_terms() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.order("web-0")
    assert (order.action, order.work, order.source) == (Action.RESTART, Work.REBOOT, Source.USER)
    assert (order.by, order.machine_name, order.host, order.project) == ("test", "web-0", None, "default")
    assert fleet.history(Kind.ORDER_PLACED) == ["restart, simulated"]


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY, Action.FREEZE])
def test_a_second_order_on_a_machine_is_refused_and_names_the_first(action: Action) -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.order("web-0")
    with pytest.raises(
        Conflict,
        match=f'"web-0" has order {first.id} \\(restart\\), which is announced: wait until it is done, or ',
    ):
        fleet.order("web-0", action)


@pytest.mark.parametrize("action", [Action.EVICT, Action.TERMINATE])
def test_an_eviction_supersedes_scheduled_orders_of_the_machine(
    action: Action,
) -> None:
    fleet = spot("web-0")
    first = fleet.order("web-0")
    gone = fleet.order("web-0", action)
    assert fleet.draft.orders[first.id].state is OrderState.CANCELLED
    assert fleet.history(Kind.ORDER_CANCELLED) == [f"superseded by {action} (order {gone.id})"]
    assert len(fleet.events()) == 1


def test_an_eviction_removes_the_machine_from_the_events_of_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    fleet.order("web-0", Action.TERMINATE)
    (left,) = fleet.events(order.id)
    assert [each.name for each in left.resources] == ["web-1"]


def test_an_eviction_cannot_be_superseded() -> None:
    fleet = spot("web-0")
    fleet.order("web-0", Action.EVICT)
    with pytest.raises(Conflict, match="evict"):
        fleet.order("web-0", Action.TERMINATE)


def test_only_spot_machines_are_evicted() -> None:
    with pytest.raises(Conflict, match='"web-0" is regular: only spot machines are evicted'):
        Fleet(machine("web-0")).order("web-0", Action.EVICT)


def test_a_running_machine_cannot_be_started_and_a_stopped_one_only_started_or_terminated() -> None:
    with pytest.raises(Conflict, match="is running, there is nothing to start"):
        Fleet(machine("web-0")).order("web-0", Action.START)
    fleet = Fleet(machine("web-0", state=MachineState.STOPPED), hosts=["host-2"])
    with pytest.raises(Conflict, match="is stopped: start it first"):
        fleet.order("web-0", Action.RESTART)
    assert fleet.order("web-0", Action.TERMINATE).open


def test_a_machine_on_a_failed_host_must_be_recovered_first() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain(action=Action.FAIL)
    with pytest.raises(Conflict, match='on host "host-1", which is failed: it is recovered first'):
        fleet.order("web-0", Action.REDEPLOY)


def test_a_project_has_a_limit_of_scheduled_orders() -> None:
    fleet = Fleet(machine("web-0"))
    assert fleet.order("web-0", scheduled=99).open
    with pytest.raises(LimitReached, match="project default has 100 operations scheduled"):
        Fleet(machine("web-0")).order("web-0", scheduled=100)


def test_orders_that_start_at_once_and_platform_orders_are_not_limited() -> None:
    assert Fleet(machine("web-0"), silent=["web"]).order("web-0", scheduled=100).open
    assert spot("web-0").order("web-0", Action.EVICT, scheduled=100).open
    stopped = Fleet(machine("web-0", state=MachineState.STOPPED), hosts=["host-2"])
    assert stopped.order("web-0", Action.START, scheduled=100).open


def test_a_rehearsal_needs_a_project_that_permits_it() -> None:
    fleet = Fleet(machine("web-0"))
    with pytest.raises(Conflict, match="not for rehearsals"):
        fleet.order("web-0", rehearsal="night")
    with pytest.raises(Conflict, match="not for rehearsals"):
        fleet.maintain(rehearsal="night")


def test_a_rehearsal_needs_a_host_with_machines() -> None:
    with pytest.raises(Conflict, match='"host-2" carries no machine of a project for rehearsals'):
        Fleet(machine("web-0"), hosts=["host-2"]).maintain("host-2", rehearsal="night")


def test_a_rehearsal_is_simulated_and_its_record_names_the_scenario() -> None:
    fleet = Fleet(machine("web-0"))
    ours = fleet.draft.projects[DEFAULT_PROJECT]
    fleet.draft.projects[DEFAULT_PROJECT] = replace(ours, rehearsal=True)
    order = fleet.order("web-0", Action.FREEZE, driver=None, rehearsal="night")
    assert order.driver == "simulated"
    assert fleet.history(Kind.ORDER_PLACED) == ["freeze (rehearsal of night)"]


# Hosts


def test_maintenance_is_a_freeze_a_reboot_or_a_redeploy() -> None:
    for work in (Work.FREEZE, Work.REBOOT, Work.REDEPLOY):
        assert Fleet(machine("web-0")).maintain(work=work).work is work
    with pytest.raises(Invalid, match="expected freeze, reboot or redeploy"):
        Fleet(machine("web-0")).maintain(work=Work.EVICT)


@pytest.mark.parametrize("action", [Action.MAINTENANCE, Action.DEGRADE])
def test_a_second_platform_order_on_a_host_is_refused_and_names_the_first(action: Action) -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.maintain()
    with pytest.raises(
        Conflict, match=f'"host-1" has order {first.id} \\(maintenance\\), which is announced'
    ):
        fleet.maintain(action=action)


def refusal(fleet: Fleet) -> str:
    """Return the refusal of a second order on a host."""
    with pytest.raises(Conflict) as refused:
        fleet.maintain()
    return str(refused.value)


def test_the_refusal_of_a_second_order_names_the_next_step() -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.maintain(work=Work.REBOOT)
    fleet.pass_(HOUR / 4)
    assert f"which is started: wait until it is done, or `forewarn order abandon {first.id}" in refusal(fleet)
    fleet.fail(first.id)
    assert f"which is failed: `forewarn order retry {first.id}` or `forewarn order abandon" in refusal(fleet)
    interventions.retry(fleet.draft, first.id, by="test", policy=fleet.policy)
    fleet.finish(first.id)
    assert "whose work is done, and which ends at 2026-" in refusal(fleet)


def test_a_second_order_is_refused_while_the_first_is_being_abandoned() -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.maintain(work=Work.REBOOT)
    fleet.pass_(HOUR / 4)
    interventions.abandon(fleet.draft, first.id, by="test")
    assert "which is being abandoned by test: wait until it is over" in refusal(fleet)


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (Action.CORDON, HostState.CORDONED),
        (Action.DEGRADE, HostState.DEGRADED),
        (Action.FAIL, HostState.FAILED),
    ],
)
def test_an_order_changes_the_state_of_its_host_and_a_restore_resets_it(
    action: Action, state: HostState
) -> None:
    fleet = Fleet(hosts=["host-1"])
    fleet.maintain(action=action)
    assert fleet.draft.hosts[HostName("host-1")].state is state
    fleet.maintain(action=Action.RESTORE)
    assert fleet.draft.hosts[HostName("host-1")].state is HostState.OK
    assert fleet.history(Kind.HOST_CHANGED) == [f"ok to {state}", f"{state} to ok"]


def test_an_order_without_work_on_machines_is_done_at_once() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(action=Action.CORDON)
    assert (order.state, order.work, order.ended_at) == (OrderState.DONE, None, fleet.now)


@pytest.mark.parametrize("action", [Action.MAINTENANCE, Action.DEGRADE, Action.FAIL, Action.CORDON])
def test_a_failed_host_accepts_only_a_restore(action: Action) -> None:
    fleet = Fleet(hosts=["host-1"])
    fleet.maintain(action=Action.FAIL)
    helps = "" if action is Action.FAIL else ": restore it first"
    with pytest.raises(Conflict, match=f'^host "host-1" is failed{helps}$'):
        fleet.maintain(action=action)


def test_a_failure_supersedes_scheduled_orders_on_the_host_and_its_machines() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    host, user = fleet.maintain(), fleet.order("web-0", Action.FREEZE)
    failure = fleet.maintain(action=Action.FAIL)
    for order in (host, user):
        assert fleet.draft.orders[order.id].state is OrderState.CANCELLED
    assert set(fleet.history(Kind.ORDER_CANCELLED)) == {f"host host-1 failed (order {failure.id})"}


def test_a_failure_supersedes_orders_under_way_on_a_machine() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = fleet.order("web-0", Action.FREEZE)
    fleet.approve(fleet.events()[0])
    fleet.maintain(action=Action.FAIL)
    assert fleet.draft.orders[order.id].state is OrderState.CANCELLED


def test_a_failure_does_not_supersede_an_eviction_that_has_begun() -> None:
    fleet = Fleet(machine("web-0", priority=Priority.SPOT), hosts=["host-2"])
    order = fleet.order("web-0", Action.EVICT)
    fleet.pass_(MINUTE)
    failure = fleet.maintain(action=Action.FAIL)
    assert fleet.draft.orders[order.id].steps[0].state is StepState.RUNNING
    assert failure.steps == ()


def test_a_restore_cancels_the_redeploys_of_a_degraded_host() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(action=Action.DEGRADE)
    fleet.maintain(action=Action.RESTORE)
    assert fleet.draft.orders[order.id].state is OrderState.CANCELLED
    assert fleet.history(Kind.ORDER_CANCELLED) == ["host host-1 was restored"]


# Impossible orders


def test_work_that_no_window_has_room_for_is_refused() -> None:
    with refused(Invalid, match="host host-1: project default has no window with room for 1 h of work"):
        Fleet(machine("web-0"), calendar=SHORT).maintain(expected=HOUR)


def test_more_machines_of_a_group_than_it_can_ever_spare_are_refused() -> None:
    machines = (machine("web-0"), machine("web-1"), machine("web-2", "host-2"))
    with pytest.raises(Invalid, match="group web: needs 2 healthy of 3, but host-1 carries 2 of one"):
        Fleet(*machines, policies={"web": GroupPolicy(budget=2)}).maintain()


def test_stopped_machines_do_not_count_in_the_check_of_a_budget() -> None:
    machines = (machine("web-0"), machine("web-1", state=MachineState.STOPPED), machine("web-2", "host-2"))
    assert Fleet(*machines, policies={"web": GroupPolicy(budget=2)}).maintain().state is OrderState.QUEUED


def test_an_emergency_is_never_refused_for_windows_or_budgets() -> None:
    machines = (machine("web-0"), machine("web-1"), machine("web-2", "host-2"))
    fleet = Fleet(*machines, policies={"web": GroupPolicy(budget=2)}, calendar=SHORT)
    assert fleet.maintain(emergency="coolant leak", expected=HOUR).state is OrderState.STARTED


@pytest.mark.parametrize(
    ("action", "work", "moves"),
    [
        (Action.REDEPLOY, None, True),
        (Action.START, None, True),
        (Action.RESTART, None, False),
        (Action.MAINTENANCE, Work.REDEPLOY, True),
        (Action.MAINTENANCE, Work.FREEZE, False),
        (Action.MAINTENANCE, None, False),
        (Action.DEGRADE, None, True),
        (Action.FAIL, None, True),
        (Action.CORDON, None, False),
    ],
)
def test_orders_that_may_move_machines_are_known_in_advance(
    action: Action, work: Work | None, moves: bool
) -> None:
    assert order_requests.may_move(action, work) == moves


def test_the_driver_is_that_of_the_request_the_host_or_the_fleet() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"))
    fleet.draft.put_host(replace(fleet.draft.hosts[HostName("host-2")], driver="external"))
    fleet.draft.defaults = FleetDefaults(driver="simulated")
    drivers = [fleet.order(name, Action.FREEZE, driver=None).driver for name in ("web-0", "web-1")]
    assert drivers == ["simulated", "external"]


def test_a_machine_without_a_host_uses_the_driver_of_its_target() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=None, state=MachineState.STOPPED))
    fleet.draft.put_host(replace(fleet.draft.hosts[HostName("host-2")], driver="external"))
    del fleet.draft.hosts[HostName("host-1")]  # its last host
    assert fleet.order("web-0", Action.START, driver=None).driver == "external"


@pytest.mark.parametrize("action", [Action.START, Action.TERMINATE])
def test_a_stopped_machine_uses_the_driver_of_its_last_host(action: Action) -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    fleet.draft.put_host(replace(fleet.draft.hosts[HostName("host-1")], driver="libvirt"))
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=None, state=MachineState.STOPPED))
    assert fleet.machine("web-0").last_host == "host-1"
    assert fleet.order("web-0", action, driver=None).driver == "libvirt"


def test_without_its_last_host_a_stopped_machine_uses_the_fleets_driver() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=None, state=MachineState.STOPPED))
    del fleet.draft.hosts[HostName("host-1")]
    fleet.draft.defaults = FleetDefaults(driver="simulated")
    assert fleet.order("web-0", Action.TERMINATE, driver=None).driver == "simulated"


def test_a_heartbeat_needs_the_external_driver() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order_requests.check_heartbeat(fleet.order("web-0", Action.FREEZE, driver="external", heartbeat=MINUTE))
    order = fleet.order("web-1", Action.FREEZE, heartbeat=MINUTE)
    with refused(Invalid, match='expected only where driver is "external", but here it is driver simulated'):
        order_requests.check_heartbeat(order)


def test_a_restore_keeps_scheduled_maintenance() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.maintain(action=Action.RESTORE)
    assert fleet.draft.orders[order.id].open


def test_the_refusal_of_a_second_order_names_the_end_of_a_finished_first() -> None:
    fleet = Fleet(machine("web-0"))
    first = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    fleet.finish(first.id)
    ends = "2026-01-05T12:16:30Z, when slow guests have seen that too"
    with pytest.raises(Conflict, match=f"whose work is done, and which ends at {ends}: try again then"):
        fleet.maintain()
