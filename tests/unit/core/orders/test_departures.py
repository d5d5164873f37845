"""Machines that leave a host, an event or the fleet early, and orders that are closed early (rule 2)."""

from dataclasses import replace

from forewarn.core.basic_types import (
    Action,
    GroupKind,
    GroupName,
    HostName,
    Kind,
    MachineId,
    OrderState,
    Priority,
    StepState,
)
from forewarn.core.model.group import Group
from forewarn.core.orders import departures
from tests.unit.slices import MINUTE, Fleet, machine


def resources(fleet: Fleet) -> list[str]:
    return [each.name for event in fleet.events() for each in event.resources]


def test_a_machine_moved_outside_forewarn_leaves_the_events_of_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    departures.remove_from_host_orders(fleet.draft, fleet.machine("web-0"), why="moved to host-2 by ops")
    assert resources(fleet) == ["web-1"]
    assert fleet.history(Kind.EVENT_LEFT) == ["moved to host-2 by ops"]
    (moot, waits) = fleet.draft.orders[order.id].steps
    assert (moot.state, moot.why, waits.state) == (
        StepState.MOOT,
        "moved to host-2 by ops",
        StepState.WAITING,
    )
    assert fleet.draft.orders[order.id].due_at == fleet.now


def test_it_keeps_its_own_orders_and_those_of_other_hosts() -> None:
    fleet = Fleet(machine("web-0"))
    own = fleet.order("web-0")
    departures.remove_from_host_orders(fleet.draft, fleet.machine("web-0"), why="moved")
    assert fleet.draft.orders[own.id].open
    assert resources(fleet) == ["web-0"]


def test_a_machine_does_not_leave_work_that_has_begun() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    departures.remove_from_host_orders(fleet.draft, fleet.machine("web-0"), why="moved")
    departures.remove_from_scheduled(fleet.draft, fleet.machine("web-0"), why="moved", keep=order.id)
    assert fleet.draft.orders[order.id].steps[0].state is StepState.RUNNING


def test_a_machine_leaves_all_scheduled_orders_except_one() -> None:
    fleet = Fleet(machine("web-0", priority=Priority.SPOT))
    order, host = fleet.order("web-0"), fleet.maintain()
    kept = fleet.order("web-0", Action.EVICT)
    departures.remove_from_scheduled(fleet.draft, fleet.machine("web-0"), why="gone", keep=kept.id)
    assert fleet.draft.orders[order.id].state is OrderState.CANCELLED
    assert fleet.draft.orders[host.id].steps[0].state is StepState.MOOT
    assert fleet.draft.orders[kept.id].state is OrderState.ANNOUNCED


def test_removing_a_machine_removes_its_steps_and_names_even_under_way() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    departures.remove_from_fleet(fleet.draft, fleet.machine("web-0"), why="removed", by="ops")
    assert MachineId("web-0") not in fleet.draft.machines
    assert [step.state for step in fleet.draft.orders[order.id].steps] == [StepState.MOOT, StepState.RUNNING]
    assert resources(fleet) == ["web-1"]
    assert fleet.history(Kind.MACHINE_REMOVED) == ["removed"]


def test_removing_a_standalone_machine_removes_its_group() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    alone = fleet.draft.groups[GroupName("web")]
    fleet.draft.put_group(Group(name=alone.name, project=alone.project, kind=GroupKind.STANDALONE))
    for name in ("web-0", "db-0"):
        departures.remove_from_fleet(fleet.draft, fleet.machine(name), why="removed")
    assert set(fleet.draft.groups) == {"db"}


def test_closing_an_order_ends_its_events_and_makes_unfinished_steps_moot() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    closed = departures.close(fleet.draft, order, why="host-1 burnt down", by="ops")
    assert (closed.state, closed.why, closed.due_at) == (OrderState.CANCELLED, "host-1 burnt down", None)
    assert [step.state for step in closed.steps] == [StepState.DONE, StepState.MOOT]
    assert fleet.events() == ()
    assert fleet.history(Kind.EVENT_CANCELLED, Kind.ORDER_CANCELLED) == ["host-1 burnt down"] * 2


def test_open_orders_of_a_machine_include_those_with_a_step_for_it() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), machine("db-0", "host-2"))
    own, host = fleet.order("web-0"), fleet.maintain()
    fleet.maintain("host-2")
    fleet.maintain("host-2", Action.CORDON)
    found = departures.open_orders_with(fleet.draft, MachineId("web-0"))
    assert [order.id for order in found] == [own.id, host.id]
    departures.close(fleet.draft, own, why="enough")
    assert [order.id for order in departures.open_orders_with(fleet.draft, MachineId("web-0"))] == [host.id]


def test_orders_on_a_host_are_those_that_work_on_its_machines() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", "host-2"))
    fleet.order("web-0")
    fleet.maintain("host-1", Action.CORDON)
    host = fleet.maintain("host-1")
    fleet.maintain("host-2")
    assert [order.id for order in departures.orders_on(fleet.draft, HostName("host-1"))] == [host.id]


def test_a_machine_without_a_host_can_leave_the_fleet() -> None:
    fleet = Fleet(replace(machine("web-0"), host=None))
    departures.remove_from_fleet(fleet.draft, fleet.machine("web-0"), why="sold")
    assert fleet.draft.machines == {}
