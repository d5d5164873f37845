"""Why an order cannot go on yet, as data (rule 10), and which rules an order is exempt from."""

from datetime import time, timedelta

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    ApprovalRule,
    GroupName,
    HostName,
    OrderState,
    ProjectName,
)
from forewarn.core.model.constraints import Hold
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Calendar, Window
from forewarn.core.orders import departures, reasons
from tests.unit.slices import HOUR, MINUTE, NOON, Fleet, machine

EVENING = Calendar(windows=(Window(days=frozenset(range(7)), start=time(20), length=timedelta(hours=2)),))
OUTSIDE = "host-1: outside the window of project default, which opens 2026-01-05 20:00 (UTC)"


def hold(fleet: Fleet, **where: str) -> None:
    reached = Hold(id="H", reason="audit", by="ops", at=NOON, **where)  # type: ignore[arg-type]
    fleet.draft.holds["H"] = reached


# Holds


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({}, "the whole fleet"),
        ({"host": HostName("host-1")}, "host host-1"),
        ({"project": DEFAULT_PROJECT}, "project default"),
    ],
)
def test_a_hold_prevents_announcements_in_its_scope(where: dict[str, str], named: str) -> None:
    fleet = Fleet(machine("web-0"))
    hold(fleet, **where)
    order = fleet.maintain()
    assert (order.state, fleet.waits(order.id)) == (OrderState.QUEUED, [f"{named}: held by ops: audit"])


@pytest.mark.parametrize("where", [{"host": HostName("host-2")}, {"project": ProjectName("shop")}])
def test_a_hold_elsewhere_prevents_nothing(where: dict[str, str]) -> None:
    fleet = Fleet(machine("web-0"))
    hold(fleet, **where)
    assert fleet.maintain().state is OrderState.ANNOUNCED


def test_a_hold_on_a_host_also_delays_a_users_own_order() -> None:
    fleet = Fleet(machine("web-0"))
    hold(fleet, host="host-1")
    assert fleet.order("web-0").state is OrderState.QUEUED


def test_an_announced_order_does_not_start_under_a_hold() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    hold(fleet)
    fleet.approve(fleet.events()[0])
    assert fleet.draft.orders[order.id].state is OrderState.ANNOUNCED
    assert fleet.waits(order.id) == ["the whole fleet: held by ops: audit"]


def test_a_failed_host_ignores_holds() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    hold(fleet)
    assert fleet.maintain(action=Action.FAIL).state is OrderState.STARTED


# Windows and budgets bind maintenance alone


def test_maintenance_waits_for_a_window() -> None:
    fleet = Fleet(machine("web-0"), calendar=EVENING)
    assert fleet.waits(fleet.maintain().id) == [OUTSIDE]


@pytest.mark.parametrize("action", [Action.DEGRADE, Action.FAIL])
def test_a_degraded_or_failed_host_ignores_windows(action: Action) -> None:
    fleet = Fleet(machine("web-0"), calendar=EVENING, hosts=["host-2"])
    assert fleet.maintain(action=action).state is not OrderState.QUEUED


def test_a_users_own_order_ignores_windows() -> None:
    fleet = Fleet(machine("web-0"), calendar=EVENING)
    assert fleet.order("web-0").state is OrderState.ANNOUNCED


def test_a_removed_machine_does_not_affect_the_window_of_its_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", group="db"), calendar=EVENING)
    order = fleet.maintain()
    fleet.pass_(8 * HOUR)
    departures.remove_from_fleet(fleet.draft, fleet.machine("db-0"), why="removed", by="ops")
    del fleet.draft.groups[GroupName("db")]
    fleet.turn(HOUR / 4)
    assert fleet.advance(order.id).state is OrderState.STARTED


def test_an_emergency_ignores_windows_and_budgets() -> None:
    policies = {"web": GroupPolicy(budget=2)}
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2"), calendar=EVENING, policies=policies)
    assert fleet.maintain(emergency="coolant leak").state is OrderState.STARTED


def test_maintenance_leaves_a_group_the_healthy_machines_it_needs() -> None:
    machines = (machine(f"web-{n}", f"host-{n + 1}") for n in range(3))
    fleet = Fleet(*machines, policies={"web": GroupPolicy(budget=2)})
    fleet.maintain("host-1")
    second = fleet.maintain("host-2")
    assert fleet.waits(second.id) == ["web: needs 2 healthy, web-0 is under an event"]


def test_a_machine_under_an_event_is_not_counted_twice() -> None:
    machines = (machine(f"web-{n}", f"host-{n + 1}") for n in range(3))
    fleet = Fleet(*machines, policies={"web": GroupPolicy(budget=2)})
    fleet.order("web-0")
    fleet.turn()
    assert fleet.maintain("host-1").state is OrderState.ANNOUNCED


def test_a_users_own_order_ignores_budgets() -> None:
    machines = (machine(f"web-{n}", f"host-{n + 1}") for n in range(3))
    fleet = Fleet(*machines, policies={"web": GroupPolicy(budget=2)})
    fleet.order("web-0")
    assert fleet.order("web-1").state is OrderState.ANNOUNCED


def test_work_starts_only_while_a_window_still_has_room_for_it() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), calendar=EVENING)
    busy = fleet.order("web-1", Action.FREEZE)
    fleet.approve(fleet.events(busy.id)[0])
    order = fleet.maintain()
    fleet.pass_(9 * HOUR + 30 * MINUTE)  # NotBefore is 21:45
    assert fleet.draft.orders[order.id].state is OrderState.ANNOUNCED
    fleet.pass_(27 * MINUTE)
    assert fleet.waits(order.id)[0] == OUTSIDE.replace("01-05", "01-06")


def test_after_the_deadline_windows_no_longer_apply() -> None:
    fleet = Fleet(machine("web-0"), calendar=EVENING)
    order = fleet.maintain(deadline=NOON + HOUR)
    fleet.pass_(HOUR)
    assert fleet.draft.orders[order.id].state is OrderState.ANNOUNCED


# Approvals


def test_an_announced_stage_names_the_event_it_waits_for_and_until_when() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    (event,) = fleet.events()
    assert fleet.waits(order.id) == [f"{event.id}: not approved; may start at 2026-01-05T12:15:00Z"]


def test_the_machines_that_must_approve_are_named_unless_any_may() -> None:
    policies = {"web": GroupPolicy(approval=ApprovalRule.ALL)}
    fleet = Fleet(machine("web-0"), machine("web-1"), policies=policies)
    order = fleet.maintain()
    fleet.approve(fleet.events()[0], by="web-0")
    (event,) = fleet.events()
    assert fleet.waits(order.id) == [
        f"{event.id}: not approved; awaits web-1; may start at 2026-01-05T12:15:00Z"
    ]


def test_all_reasons_of_a_stage_are_given() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", "host-2", domain=1), calendar=EVENING)
    fleet.order("web-1")
    hold(fleet)
    order = fleet.maintain()
    assert fleet.waits(order.id) == [
        "the whole fleet: held by ops: audit",
        "web: update domain 0 waits for domain 1",
        OUTSIDE,
    ]


# Proposals


def test_a_proposal_has_the_footprint_of_its_stage() -> None:
    fleet = Fleet(machine("web-0", domain=2), machine("web-1", domain=2), machine("db-0"))
    order = fleet.maintain()
    proposal = reasons.proposal(fleet.draft, order, order.steps, fleet.policy)
    assert proposal.footprint.counts == {"db": {0: 1}, "web": {2: 2}}
    assert proposal.footprint.projects == {DEFAULT_PROJECT}
    assert {group: list(armed) for group, armed in proposal.armed.items()} == {"db": [0], "web": [2]}


def test_a_proposal_omits_rules_that_the_order_is_exempt_from() -> None:
    machines = (machine(f"web-{n}", f"host-{n + 1}") for n in range(3))
    fleet = Fleet(*machines, policies={"web": GroupPolicy(budget=2)}, calendar=EVENING)
    order = fleet.order("web-0")
    proposal = reasons.proposal(fleet.draft, order, order.steps, fleet.policy)
    assert (proposal.armed, proposal.budgets) == ({}, {})
    assert proposal.timing.announce_at(NOON) == NOON
