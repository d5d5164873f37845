"""Steps of hosts with calls in lanes: begun once, and checked after a crash (rule 8)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.driver import Cancelled, Done, Failed, NotBegun, Running, Unknown
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import (
    HOOK,
    Action,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineState,
    OrderState,
    ServiceMode,
    StepState,
    Work,
)
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.order import HostStep, OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver, make_calls

HOST = HostName("host-1")
ABLE = frozenset({SCRIPTED})
WORK = "work of host-1"


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def service(tmp_path: Path, driver: ScriptedDriver) -> Iterator[Service]:
    """A host with a machine, whose driver works on hosts and fences them."""
    policy = Policy(working_on_hosts=ABLE, fencing=ABLE)
    service = Service(f"sqlite:///{tmp_path}/hosts.db", policy=policy)
    service.more_drivers[SCRIPTED] = driver
    service.wire(service.store)
    spec = fleet(machine("web-0", "host-1"), hosts=2)
    service.apply(replace(spec, defaults=FleetDefaults(driver=SCRIPTED)))
    service.tick()
    yield service
    service.close()


def worked_on(service: Service) -> Placed:
    """Begin work on the host."""
    terms = OrderTerms(mode=ServiceMode.IN_PLACE)
    placed = service.fleet.hosts.order_host(HOST, Action.SERVICE, OrderRequest(by="test", terms=terms))
    service.advance(minutes=15)
    return placed


def step(service: Service, placed: Placed) -> HostStep:
    (found,) = service.reload(placed).host_steps
    return found


def test_work_begun_before_a_crash_is_checked_and_not_begun_again(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.begins = [Running(None, mark="job-7")]
    placed = worked_on(service)
    make_calls(service, driver)
    assert (step(service, placed).state, step(service, placed).mark) == (StepState.RUNNING, "job-7")
    service.restart()
    make_calls(service, driver)
    assert driver.asked == [("begin", WORK, 1), ("check", WORK, 1)]
    assert driver.tasks[-1].mark == "job-7"
    assert step(service, placed).state is StepState.DONE
    service.advance(minutes=2)
    assert service.reload(placed).state is OrderState.DONE


def test_work_not_begun_before_a_crash_is_begun_by_the_next_server(
    service: Service, driver: ScriptedDriver
) -> None:
    placed = worked_on(service)
    service.restart()
    driver.begins, driver.checks = [Done()], [NotBegun()]
    make_calls(service, driver)
    make_calls(service, driver)
    assert driver.asked == [("check", WORK, 1), ("begin", WORK, 1)]
    assert step(service, placed).state is StepState.DONE


def test_an_unknown_answer_about_a_host_is_no_failure(service: Service, driver: ScriptedDriver) -> None:
    driver.begins = [OSError("no route")]
    placed = worked_on(service)
    make_calls(service, driver)
    assert step(service, placed).state is StepState.RUNNING
    assert service.reload(placed).state is OrderState.STARTED
    assert len([each for each in service.history() if each.kind == Kind.STEP_UNKNOWN]) == 1
    driver.checks = [Unknown("no route"), Done()]
    make_calls(service, driver, seconds=10)
    make_calls(service, driver, seconds=10)
    assert step(service, placed).state is StepState.DONE


def test_a_driver_can_request_another_attempt(service: Service, driver: ScriptedDriver) -> None:
    driver.begins = [Failed("busy", again=True), Done()]
    placed = worked_on(service)
    make_calls(service, driver)
    make_calls(service, driver)
    assert driver.asked == [("begin", WORK, 1), ("begin", WORK, 2)]
    assert (step(service, placed).state, step(service, placed).attempt) == (StepState.DONE, 2)


def test_abandoned_work_is_cancelled(service: Service, driver: ScriptedDriver) -> None:
    placed = worked_on(service)
    make_calls(service, driver)
    service.orders.abandon_order(placed.order.id, by="test")
    service.tick()
    driver.cancels = [Cancelled()]
    make_calls(service, driver)
    assert not service.reload(placed).open
    assert step(service, placed).state is StepState.MOOT


def test_a_machine_is_recovered_once_its_driver_has_fenced_the_host(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.begins = [Running(None)]
    placed = service.host_order("host-1", Action.FAIL)
    make_calls(service, driver)
    assert service.machine("web-0").state is MachineState.RESTARTING
    assert driver.asked == [("begin", "fence of host-1", 1)]
    make_calls(service, driver, seconds=60)
    assert step(service, placed).state is StepState.DONE
    make_calls(service, driver)
    assert driver.asked[1:] == [("check", "fence of host-1", 1), ("begin", "web-0", 1)]


def test_a_host_is_lost_and_comes_back_when_its_driver_reports_it(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.checks = [Running(None), Done()]
    placed = worked_on(service)
    make_calls(service, driver)
    service.advance(hours=1)
    assert service.everything().hosts[HOST].state is HostState.LOST
    make_calls(service, driver, seconds=60)
    assert service.everything().hosts[HOST].state is HostState.LOST
    make_calls(service, driver, seconds=60)
    service.advance(minutes=2)
    assert service.reload(placed).state is OrderState.DONE
    assert service.everything().hosts[HOST].state is HostState.OK


def test_steps_of_a_host_that_is_only_announced_are_found_after_a_crash(
    service: Service, driver: ScriptedDriver
) -> None:
    service.policy = replace(service.policy, hooks=frozenset({HostTask.CORDON}))
    service.more_drivers["hook"] = driver
    service.restart()
    terms = OrderTerms(mode=ServiceMode.IN_PLACE)
    service.fleet.hosts.order_host(HOST, Action.SERVICE, OrderRequest(by="test", terms=terms))
    service.tick()
    make_calls(service, driver)
    service.restart()
    make_calls(service, driver)
    assert driver.asked == [("begin", "cordon of host-1", 1), ("check", "cordon of host-1", 1)]


def test_the_hook_releases_the_host_of_a_cancelled_order(tmp_path: Path, driver: ScriptedDriver) -> None:
    service = Service(f"sqlite:///{tmp_path}/hooks.db", policy=Policy(hooks=frozenset(HostTask)))
    service.more_drivers[HOOK] = driver
    service.wire(service.store)
    service.apply(fleet(machine("web-0", "host-1"), hosts=2))
    service.tick()
    driver.begins = [Done()]
    placed = service.fleet.hosts.order_host(HOST, Action.SERVICE, OrderRequest(by="test"))
    service.tick()
    make_calls(service, driver)
    service.orders.cancel_order(placed.order.id, by="test")
    service.tick()
    make_calls(service, driver)
    assert driver.asked == [("begin", "cordon of host-1", 1), ("begin", "uncordon of host-1", 1)]
    over = service.reload(placed)
    assert (over.open, service.everything().hosts[HOST].state) == (False, HostState.OK)
    service.close()


# Machines that stay


def verifying(service: Service) -> None:
    service.policy = replace(service.policy, verifying_restarts=ABLE)
    service.restart()


def test_a_machine_that_stayed_is_verified_once_and_checked_after_a_crash(
    service: Service, driver: ScriptedDriver
) -> None:
    verifying(service)
    driver.begins, driver.checks = [Done(), Running(None)], [Running(None), Done()]
    placed = worked_on(service)
    make_calls(service, driver)
    assert service.machine("web-0").state is MachineState.RESTARTING
    make_calls(service, driver)
    task = driver.tasks[-1]
    assert (task.name, task.attempt, task.work, task.verifies) == ("web-0", 1, Work.START, True)
    assert task.source is not None
    assert (task.source.name, task.target) == (HOST, None)
    service.restart()
    make_calls(service, driver)
    make_calls(service, driver, seconds=60)
    assert driver.asked == [
        ("begin", WORK, 1),
        ("begin", "web-0", 1),
        ("check", "web-0", 1),
        ("check", "web-0", 1),
    ]
    assert service.machine("web-0").state is MachineState.RUNNING
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE


def test_a_machine_that_cannot_be_started_fails_with_the_reason_and_can_be_retried(
    service: Service, driver: ScriptedDriver
) -> None:
    verifying(service)
    driver.begins = [Done(), Failed("it is off: no such disk"), Done()]
    placed = worked_on(service)
    make_calls(service, driver)
    make_calls(service, driver)
    order = service.reload(placed)
    assert order.state is OrderState.FAILED
    assert [str(each) for each in order.waiting] == [
        "web-0: failed: its driver says: it is off: no such disk"
    ]
    service.orders.retry_order(order.id, by="ops")
    service.tick()
    make_calls(service, driver)
    assert driver.asked[-1] == ("begin", "web-0", 2)
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE
