"""Work on hosts themselves, with the simulated driver and a manual clock."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    HostName,
    HostState,
    Kind,
    Mobility,
    OrderState,
    ServiceMode,
    StageKind,
    StageState,
)
from forewarn.core.model.order import OrderTerms
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import TEST, Service, fleet, group, machine

HOST = HostName("host-1")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(
        fleet(
            group("web"),
            machine("web-0", HOST, group="web", domain=0, mobility=Mobility.LIVE),
            machine("web-1", HOST, group="web", domain=1),
            *(machine(f"solo-{number}", HOST) for number in range(4)),
            machine("pinned", HOST, mobility=Mobility.NONE),
        )
    )
    yield service
    service.close()


def serviced(service: Service, **terms: object) -> Placed:
    request = replace(TEST, terms=OrderTerms(**terms))  # type: ignore[arg-type]
    placed = service.fleet.hosts.order_host(HOST, Action.SERVICE, request)
    service.tick()
    return placed


def test_a_host_is_emptied_worked_on_and_reopened(service: Service) -> None:
    placed = serviced(service)
    assert service.everything().hosts[HOST].state is HostState.CORDONED
    service.advance(hours=2)
    order = service.reload(placed)
    assert order.state is OrderState.DONE
    assert [stage.state for stage in order.stages] == [StageState.DONE] * 2
    there = [each.name for each in service.everything().machines.values() if each.host == HOST]
    assert there == ["pinned"]
    assert service.everything().hosts[HOST].state is HostState.OK
    assert not [record for record in service.history() if record.kind == Kind.EVENT_WITHDRAWN]
    # The driver gets only the machines that move.
    begun = {name for _, name, _ in service.driver.begun}
    assert begun == {"web-0", "web-1", *(f"solo-{number}" for number in range(4)), "work of host-1"}


def test_machines_return_on_request(service: Service) -> None:
    placed = serviced(service, returning=True)
    service.advance(hours=4)
    assert service.reload(placed).state is OrderState.DONE
    assert {each.host for each in service.everything().machines.values()} == {HOST}


def test_machines_that_wait_to_return_do_so_when_their_host_is_reopened(service: Service) -> None:
    placed = serviced(service, returning=True)
    service.fleet.hosts.order_host(HOST, Action.CORDON, TEST)
    service.advance(hours=4)
    assert "no machine returns to it" in service.reload(placed).waiting[0].reason
    service.fleet.hosts.order_host(HOST, Action.UNCORDON, TEST)
    service.advance(hours=2)
    assert service.reload(placed).state is OrderState.DONE


def test_work_on_a_host_survives_restarts_at_any_time(service: Service) -> None:
    placed = serviced(service, returning=True)
    for _ in range(12):
        service.advance(minutes=13)
        service.restart()
    assert service.reload(placed).state is OrderState.DONE
    assert len(service.driver.begun) == len(set(service.driver.begun))


def test_a_host_with_external_work_waits_for_its_report(service: Service) -> None:
    placed = serviced(service, mode=ServiceMode.EVACUATE, host_driver=EXTERNAL)
    service.advance(hours=1, minutes=10)
    order = service.reload(placed)
    stage = next(each for each in order.stages if each.kind is StageKind.HOST)
    assert stage.state is StageState.STARTED
    assert "to be done outside" in order.waiting[0].reason
    service.orders.heartbeat(order.id)
    service.orders.complete_order(order.id, by="test")
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE


def test_a_failed_move_waits_for_a_person_and_the_host_stays_cordoned(service: Service) -> None:
    service.driver.failing.add("solo-2")
    placed = serviced(service)
    service.advance(hours=2)
    order = service.reload(placed)
    assert order.state is OrderState.FAILED
    assert [stage.state for stage in order.stages] == [StageState.STARTED, StageState.QUEUED]
    assert service.everything().hosts[HOST].state is HostState.CORDONED
    service.driver.failing.clear()
    service.orders.retry_order(order.id, by="test")
    service.advance(hours=1)
    assert service.reload(placed).state is OrderState.DONE


def test_a_machine_added_to_the_host_meanwhile_leaves_too(service: Service) -> None:
    placed = serviced(service)
    service.advance(minutes=11)
    service.put("late", host=HOST)
    (event,) = service.events("late")
    assert event.not_before - event.announced_at >= timedelta(minutes=10)
    service.advance(hours=2)
    assert service.machine("late").host != HOST
    assert service.reload(placed).state is OrderState.DONE


def test_a_machine_deleted_meanwhile_is_no_longer_awaited(service: Service) -> None:
    placed = serviced(service)
    service.advance(minutes=11)
    service.delete("pinned")
    service.delete("web-1")
    service.advance(hours=2)
    assert service.reload(placed).state is OrderState.DONE


def test_a_hold_delays_everything_that_has_not_started(service: Service) -> None:
    placed = serviced(service)
    hold = service.fleet.hosts.hold(TEST, project=None, host=HOST)
    service.advance(hours=1)
    assert service.reload(placed).state in (OrderState.QUEUED, OrderState.ANNOUNCED)
    assert {record.kind for record in service.history()} >= {Kind.EVENT_WITHDRAWN}
    service.fleet.hosts.release(hold.id, by="test")
    service.advance(hours=3)
    assert service.reload(placed).state is OrderState.DONE
