"""Moves that the driver prechecks, on a real store."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.driver import DriverTask, Unknown
from forewarn.control.engine.driver_calls import move_answer, precheck_call
from forewarn.control.orders.order_use_cases import Placed
from forewarn.control.rollouts import prechecked_moves
from forewarn.control.rollouts.rollout_views import RolloutRequest, RolloutView
from forewarn.core.basic_types import (
    Action,
    EventType,
    HostName,
    Kind,
    Mobility,
    OrderState,
    ServiceMode,
    Work,
)
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders import move_prechecks
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from tests.helpers.database.statements import counted
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver, make_calls

HOST = HostName("host-1")
WHY = "disk vda is not seen by both"


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def service(tmp_path: Path, driver: ScriptedDriver) -> Iterator[Service]:
    """A host with a machine that moves live, and a second host."""
    service = Service(f"sqlite:///{tmp_path}/prechecks.db", policy=Policy(prechecking=frozenset({SCRIPTED})))
    service.more_drivers[SCRIPTED] = driver
    service.wire(service.store)
    spec = fleet(machine("web-0", "host-1", mobility=Mobility.LIVE), hosts=2)
    service.apply(replace(spec, defaults=FleetDefaults(driver=SCRIPTED)))
    service.tick()
    yield service
    service.close()


def leaving(service: Service) -> Placed:
    terms = OrderTerms(mode=ServiceMode.EVACUATE)
    placed = service.fleet.hosts.order_host(HOST, Action.SERVICE, OrderRequest(by="test", terms=terms))
    service.tick()
    return placed


def event_types(service: Service) -> list[EventType]:
    return [event.type for event in service.everything().events.values()]


def test_the_event_follows_the_precheck(service: Service, driver: ScriptedDriver) -> None:
    placed = leaving(service)
    assert (placed.events, event_types(service)) == ((), [])
    make_calls(service, driver)
    assert driver.prechecked == [("web-0", Work.FREEZE, "host-2")]
    assert event_types(service) == [EventType.FREEZE]
    service.advance(minutes=15)
    make_calls(service, driver)
    # Again immediately before it begins.
    assert driver.prechecked == [("web-0", Work.FREEZE, "host-2")] * 2
    assert driver.asked == [("begin", "web-0", 1)]


def test_a_machine_that_every_host_refuses_is_never_announced(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.refusing = {"host-2": WHY}
    placed = leaving(service)
    make_calls(service, driver)
    make_calls(service, driver)
    assert driver.prechecked == [("web-0", Work.FREEZE, "host-2"), ("web-0", Work.REDEPLOY, "host-2")]
    order = service.reload(placed)
    assert (order.state, event_types(service)) == (OrderState.FAILED, [])
    assert f"host-2 cannot take it, its driver says: {WHY}" in order.waiting[0].reason
    assert not [each for each in service.history() if each.kind == Kind.EVENT_SCHEDULED]
    driver.refusing = {}
    service.orders.retry_order(order.id, by="ops")
    service.tick()
    make_calls(service, driver)
    assert event_types(service) == [EventType.REDEPLOY]


def test_a_live_move_waits_for_an_unreachable_host(service: Service, driver: ScriptedDriver) -> None:
    driver.refusing = {"host-2": Unknown("host-2 cannot be reached")}
    placed = leaving(service)
    make_calls(service, driver)
    assert "host-2 cannot be reached" in service.reload(placed).waiting[0].reason
    service.advance(seconds=move_prechecks.ASK_AGAIN.total_seconds())
    make_calls(service, driver)
    assert event_types(service) == []
    driver.refusing = {}
    service.advance(seconds=move_prechecks.ASK_AGAIN.total_seconds())
    make_calls(service, driver)
    assert event_types(service) == [EventType.FREEZE]


def test_a_brief_failure_at_the_start_does_not_turn_a_live_move_into_a_redeploy(
    service: Service, driver: ScriptedDriver
) -> None:
    leaving(service)
    make_calls(service, driver)
    service.advance(minutes=15)
    driver.refusing = {"host-2": Unknown("host-2 cannot be reached")}
    make_calls(service, driver)
    driver.refusing = {}
    make_calls(service, driver, seconds=10)
    (step,) = (each for order in service.everything().orders.values() for each in order.steps)
    assert (step.work, step.attempt, step.lowered_from) == (Work.FREEZE, 1, None)


def test_a_precheck_lost_with_the_server_is_repeated(service: Service, driver: ScriptedDriver) -> None:
    leaving(service)
    service.calls.waiting = []
    service.restart()
    make_calls(service, driver)
    assert driver.prechecked == []
    service.advance(seconds=move_prechecks.ANSWERED_WITHIN.total_seconds())
    make_calls(service, driver)
    assert event_types(service) == [EventType.FREEZE]


def test_an_answer_for_an_order_that_is_cancelled_is_dropped(
    service: Service, driver: ScriptedDriver
) -> None:
    placed = leaving(service)
    service.orders.cancel_order(placed.order.id, by="ops")
    make_calls(service, driver)
    assert service.reload(placed).state is OrderState.CANCELLED
    assert event_types(service) == []


def test_drivers_without_prechecks_cost_nothing(tmp_path: Path) -> None:
    costs = []
    for name, prechecking in (("with", frozenset({SCRIPTED})), ("without", frozenset[str]())):
        service = Service(f"sqlite:///{tmp_path}/{name}.db", policy=Policy(prechecking=prechecking))
        service.apply(fleet(machine("web-0", "host-1", mobility=Mobility.LIVE), hosts=2))
        with counted(service.store) as statements:
            leaving(service)
        costs.append(len(statements))
        assert event_types(service) == [EventType.FREEZE]
        service.close()
    assert costs[0] == costs[1]


# Plans


def planned(service: Service, driver: ScriptedDriver) -> RolloutView:
    """Plan work on the host, with lanes that answer immediately."""
    prechecks_of_plans = service.context.plan_prechecks

    def submit(task: DriverTask) -> None:
        answer = driver.made(precheck_call(task), now=service.real_now())
        prechecks_of_plans.heard(answer.call.task, move_answer(answer))

    prechecks_of_plans.submit = submit
    return service.rollouts.plan(RolloutRequest(hosts=(HOST,), work=Work.HOST, by="test"))


def test_a_plan_shows_the_objections_of_the_driver(service: Service, driver: ScriptedDriver) -> None:
    driver.refusing = {"host-2": WHY}
    (emptied,) = planned(service, driver).emptying
    assert [each.reason for each in emptied.obstacles] == [f"host-2 cannot take it, its driver says: {WHY}"]
    assert driver.prechecked == [("web-0", Work.FREEZE, "host-2"), ("web-0", Work.REDEPLOY, "host-2")]
    planned(service, driver)
    assert len(driver.prechecked) == 2  # cached for a minute
    service.real += 61
    driver.refusing = {}
    assert planned(service, driver).emptying[0].possible


def test_a_plan_asks_about_more_hosts_while_all_refuse(service: Service, driver: ScriptedDriver) -> None:
    more = fleet(machine("web-0", "host-1", mobility=Mobility.LIVE), hosts=6)
    service.apply(replace(more, defaults=FleetDefaults(driver=SCRIPTED)))
    driver.refusing = dict.fromkeys(("host-2", "host-3", "host-4"), WHY)
    view = planned(service, driver)
    assert view.emptying[0].possible
    assert not [each for each in view.warnings if "cannot be moved live" in each]
    assert [target for *_, target in driver.prechecked] == [f"host-{number}" for number in range(2, 7)]


def test_a_plan_shows_how_many_hosts_were_prechecked(
    service: Service, driver: ScriptedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prechecked_moves, "WITHIN", 0.0)
    more = fleet(machine("web-0", "host-1", mobility=Mobility.LIVE_ONLY), hosts=6)
    service.apply(replace(more, defaults=FleetDefaults(driver=SCRIPTED)))
    driver.refusing = {f"host-{number}": WHY for number in range(2, 7)}
    (emptied,) = planned(service, driver).emptying
    (reason,) = (each.reason for each in emptied.obstacles)
    assert reason.startswith(
        "whether it can leave is not known: 3 of 5 hosts were asked: host-2 cannot take it"
    )


def test_a_plan_shows_how_many_machines_were_not_prechecked(
    service: Service, driver: ScriptedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prechecked_moves, "MOST_MACHINES", 1)
    machines = (machine(f"web-{number}", "host-1", mobility=Mobility.LIVE) for number in range(3))
    service.apply(replace(fleet(*machines, hosts=2), defaults=FleetDefaults(driver=SCRIPTED)))
    assert (
        "drivers were asked about the first 1 machines that leave their hosts: "
        "whether 2 more machines can leave is not known"
    ) in planned(service, driver).warnings


def test_a_plan_does_not_promise_to_empty_a_host_whose_driver_has_no_precheck(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.refusing = {"host-2": Unknown("host-2 cannot be reached")}
    (emptied,) = planned(service, driver).emptying
    assert [each.reason for each in emptied.obstacles] == [
        "whether it can leave is not known: its driver says: host-2 cannot be reached"
    ]
    driver.refusing = {}
    assert planned(service, driver).emptying[0].possible


def test_a_plan_warns_of_machines_that_cannot_be_moved_live(service: Service, driver: ScriptedDriver) -> None:
    driver.refusing_live = WHY
    view = planned(service, driver)
    assert view.emptying[0].possible
    assert any("web-0 cannot be moved live, and is redeployed" in each for each in view.warnings)


def test_a_plan_without_a_timely_answer_shows_it(
    service: Service, driver: ScriptedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prechecked_moves, "WITHIN", 0.0)
    service.context.plan_prechecks.submit = lambda _: None
    (emptied,) = service.rollouts.plan(RolloutRequest(hosts=(HOST,), work=Work.HOST, by="test")).emptying
    assert [each.reason for each in emptied.obstacles] == [
        "whether it can leave is not known: its driver has not answered yet"
    ]
