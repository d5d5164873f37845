"""Unreachable hosts: no machine is sent there, and orders wait until they are reachable."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    Action,
    EventStatus,
    HostName,
    HostState,
    Kind,
    MachineState,
    Mobility,
    OrderState,
    StepState,
    Work,
)
from forewarn.core.model.host import HostResource
from forewarn.core.model.order import AttemptId, Order, Step
from forewarn.core.orders import interventions, lost_hosts, reports
from tests.unit.slices import HOUR, MINUTE, SECOND, Fleet, machine

HOST, OTHER, THIRD = HostName("host-1"), HostName("host-2"), HostName("host-3")


def cut(fleet: Fleet, *hosts: HostName) -> None:
    for host in hosts or (OTHER,):
        lost_hosts.note_unreachable(fleet.draft, host, why="no route to it")


def restore(fleet: Fleet, host: HostName = OTHER) -> None:
    """Mark a host as reachable, and advance the orders that this wakes."""
    lost_hosts.note_reachable(fleet.draft, host)
    fleet.pass_(SECOND)


def step(fleet: Fleet, order: Order) -> Step:
    (only,) = fleet.draft.orders[order.id].steps
    return only


def unreached(fleet: Fleet, order: Order) -> None:
    """Report the target of a step as unreachable before the step begins."""
    running = step(fleet, order)
    attempt = AttemptId(order.id, running.machine, running.attempt)
    reports.step_target_unreachable(fleet.draft, attempt, why="no route to it")
    fleet.advance(order.id)


def test_a_host_that_becomes_reachable_again_is_recorded_once_with_the_downtime() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    cut(fleet)
    cut(fleet)
    assert fleet.draft.hosts[OTHER].unreachable_since == fleet.now
    assert fleet.draft.changes().hosts_to_recheck == {OTHER}  # as its order tells
    assert not fleet.draft.hosts[OTHER].is_usable
    fleet.turn(90 * SECOND)
    cut(fleet)
    for _ in range(2):
        lost_hosts.note_reachable(fleet.draft, OTHER)
    assert fleet.draft.hosts[OTHER].is_usable
    said = fleet.history(Kind.HOST_UNREACHABLE, Kind.HOST_REACHABLE)
    assert said == ["no route to it", "after 1 m 30 s"]


def test_reachability_of_a_host_outside_the_fleet_is_ignored() -> None:
    fleet = Fleet(machine("a-0"))
    cut(fleet, HostName("gone"))
    lost_hosts.note_reachable(fleet.draft, HostName("gone"))
    assert fleet.history(Kind.HOST_UNREACHABLE, Kind.HOST_REACHABLE) == []


def test_machines_go_to_reachable_hosts() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0", THIRD), hosts=(OTHER,))
    cut(fleet)
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).target == THIRD


@pytest.mark.parametrize("action", [Action.REDEPLOY, Action.SERVICE])
def test_an_order_waits_for_its_only_target_to_be_reachable(
    action: Action,
) -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    cut(fleet)
    order = fleet.service() if action is Action.SERVICE else fleet.order("a-0", action)
    assert fleet.waits(order.id) == [
        "a-0: finds no host: host-2 cannot be reached since 2026-01-05T12:00:00Z",
    ]
    assert all(wait.room for wait in fleet.draft.orders[order.id].waiting)
    assert fleet.events() == ()
    fleet.pass_(HOUR)
    assert fleet.events() == ()
    restore(fleet)
    assert [event.status for event in fleet.events()] == [EventStatus.SCHEDULED]
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).target == OTHER


def test_unsuitable_unreachable_hosts_are_not_waited_for() -> None:
    fleet = Fleet(machine("a-0", labels={"disk": "ssd"}), hosts=(OTHER,))
    cut(fleet)
    order = fleet.service()
    assert fleet.waits(order.id) == ["a-0: finds no host with room for it: most lack disk=ssd"]


def test_a_machine_with_requirements_waits_for_the_unreachable_host_that_meets_them() -> None:
    fleet = Fleet(machine("a-0", labels={"disk": "ssd"}), hosts=(OTHER, THIRD))
    fleet.draft.put_host(replace(fleet.draft.hosts[OTHER], labels={"disk": "ssd"}))
    cut(fleet)
    fleet.turn()
    order = fleet.service()
    expected = "a-0: finds no host: host-2 cannot be reached since 2026-01-05T12:00:00Z"
    assert fleet.waits(order.id) == [expected]
    restore(fleet)
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).target == OTHER


def test_of_many_unreachable_hosts_some_are_named_and_the_rest_counted() -> None:
    names = [HostName(f"host-{number}") for number in range(2, 7)]
    fleet = Fleet(machine("a-0"), hosts=names)
    cut(fleet, *names)
    order = fleet.service()
    since = "(since 2026-01-05T12:00:00Z)"
    (said,) = fleet.waits(order.id)
    named = f"host-2 {since}, host-3 {since}, host-4 {since} and 2 more cannot be reached"
    assert said == f"a-0: finds no host: {named}"


@pytest.mark.parametrize("action", [Action.REDEPLOY, Action.SERVICE])
def test_an_event_does_not_start_while_its_machine_has_no_reachable_target(action: Action) -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    order = fleet.service() if action is Action.SERVICE else fleet.order("a-0", action)
    cut(fleet)
    fleet.pass_(16 * MINUTE)
    assert [event.status for event in fleet.events()] == [EventStatus.SCHEDULED]
    assert any("host-2 cannot be reached since" in said for said in fleet.waits(order.id))
    fleet.pass_(HOUR)  # it is withdrawn, and announced again only once there is a host
    assert fleet.events() == ()
    assert len(fleet.history(Kind.EVENT_WITHDRAWN)) == 1
    restore(fleet)
    fleet.pass_(15 * MINUTE)
    fleet.pass_(MINUTE)
    assert step(fleet, order).state is StepState.RUNNING


def test_a_reservation_on_an_unreachable_host_is_replaced() -> None:
    fleet = Fleet(machine("a-0", resources={"cpus": 2}), hosts=(OTHER, THIRD))
    for host in (OTHER, THIRD):
        fleet.draft.put_host(replace(fleet.draft.hosts[host], resources={"cpus": HostResource(amount=4)}))
    fleet.turn()
    order = fleet.service()
    assert step(fleet, order).target == OTHER
    cut(fleet)
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).target == THIRD


@pytest.mark.parametrize("action", [Action.REDEPLOY, Action.SERVICE])
@pytest.mark.parametrize("mobility", [Mobility.LIVE, Mobility.COLD])
def test_a_step_waits_if_its_driver_cannot_reach_the_target(action: Action, mobility: Mobility) -> None:
    fleet = Fleet(machine("a-0", mobility=mobility), hosts=(OTHER,))
    order = fleet.service() if action is Action.SERVICE else fleet.order("a-0", action)
    fleet.pass_(15 * MINUTE)
    before = step(fleet, order)
    unreached(fleet, order)
    waiting = step(fleet, order)
    assert (waiting.state, waiting.work, waiting.attempt) == (StepState.WAITING, before.work, 2)
    assert (waiting.failures, waiting.refused, waiting.lowered_from) == (0, (), None)
    assert fleet.machine("a-0").state is MachineState.RUNNING
    assert fleet.machine("a-0").bound_for is None
    assert any("host-2 cannot be reached since" in said for said in fleet.waits(order.id))
    assert fleet.draft.orders[order.id].state is OrderState.STARTED
    restore(fleet)
    again = step(fleet, order)
    assert (again.state, again.target, again.work) == (StepState.RUNNING, OTHER, before.work)
    fleet.finish(order.id)
    assert fleet.machine("a-0").host == OTHER


def test_a_step_with_an_unreachable_target_goes_to_another_host_at_once() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER, THIRD))
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).target == OTHER
    unreached(fleet, order)
    again = step(fleet, order)
    assert (again.state, again.target, again.refused) == (StepState.RUNNING, THIRD, ())
    assert fleet.history(Kind.ORDER_RETRIED) == ["host-2 cannot be reached"]


def test_a_late_answer_about_an_unreachable_target_is_ignored() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    unreached(fleet, order)
    late = AttemptId(order.id, step(fleet, order).machine, 1)
    before = step(fleet, order)
    reports.step_target_unreachable(fleet.draft, late, why="no route to it")
    assert step(fleet, order) == before


def test_an_abandoned_step_with_an_unreachable_target_is_over() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    interventions.abandon(fleet.draft, order.id, by="test")
    running = step(fleet, order)
    reports.step_target_unreachable(
        fleet.draft, AttemptId(order.id, running.machine, running.attempt), why="away"
    )
    fleet.advance(order.id)
    assert step(fleet, order).state is StepState.MOOT
    assert not fleet.draft.orders[order.id].open


def test_a_machine_of_a_failed_host_waits_for_a_reachable_host() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    cut(fleet)
    order = fleet.maintain(action=Action.FAIL, fenced="the power is off")
    assert step(fleet, order).state is StepState.WAITING
    assert "a-0: finds no host: host-2 cannot be reached since 2026-01-05T12:00:00Z" in fleet.waits(order.id)
    assert fleet.machine("a-0").state is MachineState.RESTARTING
    restore(fleet)
    assert (step(fleet, order).state, step(fleet, order).target) == (StepState.RUNNING, OTHER)
    unreached(fleet, order)
    assert fleet.machine("a-0").state is MachineState.RESTARTING
    assert step(fleet, order).state is StepState.WAITING
    restore(fleet)
    fleet.finish(order.id)
    assert (fleet.machine("a-0").host, fleet.machine("a-0").state) == (OTHER, MachineState.RUNNING)


def test_a_stopped_machine_waits_for_the_host_that_defines_it() -> None:
    fleet = Fleet(machine("a-0"), machine("b-0", OTHER))
    for host in (HOST, OTHER):
        fleet.draft.put_host(replace(fleet.draft.hosts[host], driver="libvirt"))
    fleet.draft.put_machine(replace(fleet.machine("a-0"), state=MachineState.STOPPED, host=None))
    fleet.turn()
    cut(fleet, HOST)
    order = fleet.order("a-0", Action.START, driver="libvirt")
    expected = "a-0: finds no host: host-1 cannot be reached since 2026-01-05T12:00:00Z"
    assert fleet.waits(order.id) == [expected]
    restore(fleet, HOST)
    assert step(fleet, order).target == HOST
    unreached_at = step(fleet, order)
    reports.step_target_unreachable(
        fleet.draft, AttemptId(order.id, unreached_at.machine, unreached_at.attempt), why="away"
    )
    assert fleet.machine("a-0").state is MachineState.STOPPED


def test_the_driver_of_a_start_does_not_depend_on_reachability() -> None:
    fleet = Fleet(machine("a-0"))
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], driver="libvirt"))
    fleet.draft.put_machine(replace(fleet.machine("a-0"), state=MachineState.STOPPED, host=None))
    fleet.turn()
    cut(fleet, HOST)
    order = fleet.order("a-0", Action.START, driver=None)
    assert order.driver == "libvirt"


def test_machines_return_once_their_host_is_reachable() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    order = fleet.service(returning=True)
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(10 * MINUTE)
    fleet.finish_host(order.id)
    cut(fleet, HOST)
    fleet.pass_(10 * MINUTE)
    fleet.pass_(10 * MINUTE)
    said = "host host-1: cannot be reached since 2026-01-05T12:25:00Z: machines come back later"
    assert said in fleet.waits(order.id)
    assert fleet.draft.hosts[HOST].state is HostState.OK
    restore(fleet, HOST)
    fleet.pass_(15 * MINUTE)
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    assert fleet.machine("a-0").host == HOST


def test_machines_on_their_way_back_do_not_wait_for_their_host() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    order = fleet.service(returning=True)
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    fleet.finish_host(order.id)
    fleet.pass_(15 * MINUTE)
    assert [each.state for each in fleet.draft.orders[order.id].steps] == [StepState.DONE, StepState.RUNNING]
    before = fleet.waits(order.id)
    cut(fleet, HOST)
    fleet.advance(order.id)
    assert fleet.waits(order.id) == before == []


def test_work_that_moves_nothing_does_not_wait() -> None:
    fleet = Fleet(machine("a-0"), hosts=(OTHER,))
    cut(fleet)
    order = fleet.order("a-0", Action.RESTART)
    fleet.pass_(15 * MINUTE)
    assert step(fleet, order).state is StepState.RUNNING
    assert step(fleet, order).work is Work.REBOOT
