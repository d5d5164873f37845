"""The driver of an order: from the request, the host or the fleet; otherwise external."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import DEFAULT_PROJECT, Action, HostName, Kind, MachineId, OrderState, Work
from forewarn.core.disclosure import DONE_OUTSIDE, Disclosure, Names
from forewarn.core.errors import Invalid
from forewarn.core.model.declaration import FleetDefaults, HostDrivers
from forewarn.core.model.order import Order, OrderTerms
from forewarn.core.orders import order_requests, reports
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.server import welcome
from tests.unit.slices import HOUR, Fleet, machine


def declared(*, default: str | None = None, own: str | None = None) -> Fleet:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    fleet.draft.defaults = FleetDefaults(driver=default)
    host = fleet.draft.hosts[HostName("host-1")]
    fleet.draft.put_host(replace(host, driver=own))
    return fleet


def restart(fleet: Fleet, **asked: str) -> Order:
    request = OrderRequest(by="test", **asked)  # type: ignore[arg-type]
    return order_requests.on_machine(
        fleet.draft, MachineId("web-0"), Action.RESTART, request, scheduled=0, policy=fleet.policy
    )


def maintain(fleet: Fleet, **terms: object) -> Order:
    request = OrderRequest(by="test", terms=OrderTerms(**terms))  # type: ignore[arg-type]
    return order_requests.on_host(
        fleet.draft, HostName("host-1"), Action.MAINTENANCE, request, work=Work.REBOOT, policy=fleet.policy
    )


@pytest.mark.parametrize(
    ("default", "own", "driver"),
    [
        (None, None, "external"),
        ("simulated", None, "simulated"),
        ("simulated", "external", "external"),
        (None, "simulated", "simulated"),
    ],
)
def test_an_order_takes_the_driver_of_its_host_or_of_the_fleet(
    default: str | None, own: str | None, driver: str
) -> None:
    fleet = declared(default=default, own=own)
    assert restart(fleet).driver == driver
    assert HostDrivers(defaults=fleet.draft.defaults, own={HostName("host-1"): own} if own else {}).of(
        HostName("host-1")
    ) == (driver)


def test_an_operator_can_name_another_driver_for_one_order() -> None:
    assert restart(declared(default="simulated"), driver="external").driver == "external"


def test_a_rehearsal_always_uses_the_simulated_driver() -> None:
    fleet = declared(own="external")
    projects = fleet.draft.projects
    projects[DEFAULT_PROJECT] = replace(projects[DEFAULT_PROJECT], rehearsal=True)
    assert maintain(fleet, rehearsal="mine").driver == "simulated"


def test_a_later_declaration_applies_to_later_orders() -> None:
    fleet = declared()
    order = restart(fleet)
    fleet.draft.defaults = FleetDefaults(driver="simulated")
    assert fleet.advance(order.id).driver == "external"


def test_a_heartbeat_is_refused_for_orders_without_work() -> None:
    with pytest.raises(Invalid, match="heartbeat_seconds: expected only where driver is"):
        order_requests.check_heartbeat(
            maintain(declared(default="simulated"), heartbeat=timedelta(minutes=1))
        )


def test_the_history_marks_simulated_work() -> None:
    fleet = declared(default="simulated")
    order = maintain(fleet)
    assert fleet.history(Kind.ORDER_PLACED) == ["maintenance reboot, simulated"]
    fleet.pass_(HOUR / 4)
    fleet.finish(order.id)
    fleet.pass_(HOUR / 4)
    assert fleet.history(Kind.STEP_DONE) == ["reboot, simulated"]
    assert fleet.history(Kind.ORDER_DONE) == ["simulated"]


def test_work_in_parts_names_a_gate_that_goes_one_by_one() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = maintain(fleet)
    fleet.pass_(HOUR / 4)
    waits = [each.reason for each in fleet.draft.orders[order.id].waiting]
    assert any(f"`forewarn gate order {order.id} --one-by-one -- COMMAND`" in reason for reason in waits)


def test_external_work_names_the_commands_that_take_it_up_and_complete_it() -> None:
    fleet = declared()
    order = maintain(fleet)
    fleet.pass_(HOUR / 4)
    (waiting,) = fleet.draft.orders[order.id].waiting
    assert waiting.what == "host host-1"
    assert "not taken up yet" in waiting.reason
    assert f"`forewarn gate order {order.id} -- COMMAND`" in waiting.reason
    assert f"`forewarn order complete {order.id}`" in waiting.reason
    reports.heartbeat(fleet.draft, order.id, heard_at=fleet.now, policy=fleet.policy)
    (waiting,) = fleet.draft.orders[order.id].waiting
    assert waiting.reason.startswith("done outside since ")


def test_a_tenant_does_not_read_operator_commands() -> None:
    fleet = declared()
    order = restart(fleet)
    fleet.pass_(HOUR / 4)
    disclosed = Disclosure(project=DEFAULT_PROJECT, names=Names()).shown(fleet.draft.orders[order.id])
    assert [each.reason for each in disclosed.waiting] == [DONE_OUTSIDE]


def test_only_work_that_was_taken_up_can_go_silent() -> None:
    fleet = declared()
    order = maintain(fleet)
    fleet.pass_(HOUR / 4)
    assert silence(fleet, order) is OrderState.STARTED
    reports.heartbeat(fleet.draft, order.id, heard_at=fleet.now, policy=fleet.policy)
    assert silence(fleet, order) is OrderState.FAILED


def silence(fleet: Fleet, order: Order) -> OrderState:
    return reports.fail_silent_steps(
        fleet.draft, order.id, by="forewarn", why="no heartbeat", policy=fleet.policy
    ).state


def test_the_record_of_a_start_tells_if_it_is_simulated() -> None:
    assert welcome.work({"simulated": 3, "external": 0}) == ["  work       simulated: nothing is really done"]
    some = welcome.work({"simulated": 1, "external": 2})
    assert some[0] == "  work       simulated on 1 of 3 hosts: nothing is really done"
    assert some[1].startswith("  work       done outside on 2 of 3 hosts: ")
    assert welcome.work({}) == []
