"""Moves of one machine: their target, refusals and events."""

from dataclasses import replace
from typing import Any

import pytest

from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    EventType,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    Mobility,
    OrderState,
    Source,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host, HostResource
from forewarn.core.model.order import AttemptId, Order, OrderTerms
from forewarn.core.orders import interventions, move_prechecks, order_requests, reports
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from tests.unit.slices import MINUTE, Fleet, machine

HOST_2, HOST_3 = HostName("host-2"), HostName("host-3")


def move(fleet: Fleet, name: str = "web-0", *, live: bool = False, **terms: Any) -> Order:
    work = Work.FREEZE if live else Work.REDEPLOY
    driver = terms.pop("driver", "simulated")
    request = OrderRequest(by="test", driver=driver, work=work, terms=OrderTerms(**terms))
    machine = MachineId(name)
    return order_requests.on_machine(
        fleet.draft, machine, Action.MOVE, request, scheduled=0, policy=fleet.policy
    )


def moved(fleet: Fleet, order: Order) -> Order:
    """Start and finish an order."""
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    return fleet.draft.orders[order.id]


def refusal(fleet: Fleet, **how: Any) -> str:
    with pytest.raises(Conflict) as refused:
        move(fleet, **how)
    return str(refused.value)


def test_a_live_move_is_announced_as_a_freeze_and_ends_on_the_named_host() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", HOST_2), hosts=[HOST_2, HOST_3])
    order = move(fleet, live=True, to=HOST_2)
    (event,) = fleet.events()
    assert (event.type, event.source, event.duration_seconds) == (EventType.FREEZE, Source.PLATFORM, 5)
    assert event.not_before == fleet.now + 15 * MINUTE
    assert "Live Migration" in event.description
    assert (order.steps[0].target, fleet.machine("web-0").bound_for) == (HOST_2, HOST_2)
    assert fleet.history(Kind.ORDER_PLACED) == ["move live to host-2, simulated"]
    moved(fleet, order)
    assert (fleet.machine("web-0").host, fleet.machine("web-0").bound_for) == (HOST_2, None)
    assert fleet.machine("web-0").state is MachineState.RUNNING


def test_a_move_without_a_named_host_chooses_one_like_a_redeploy() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", HOST_2), hosts=[HOST_2, HOST_3])
    order = move(fleet)
    (event,) = fleet.events()
    assert (event.type, event.description) == (
        EventType.REDEPLOY,
        "Host server is undergoing maintenance.",
    )
    assert event.not_before == fleet.now + 10 * MINUTE
    moved(fleet, order)
    assert fleet.machine("web-0").host == HOST_3


def test_a_live_move_without_a_named_host_moves_its_machine() -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2])
    moved(fleet, move(fleet, live=True))
    assert fleet.machine("web-0").host == HOST_2


def test_a_move_is_announced_to_groups_that_have_not_enabled_events() -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2], silent=["web"])
    assert move(fleet).state is OrderState.ANNOUNCED


def test_a_move_waits_for_another_update_domain() -> None:
    """Rule 4."""
    fleet = Fleet(machine("web-0"), machine("web-1", HOST_2, domain=1), hosts=[HOST_3])
    fleet.maintain(HOST_2)
    fleet.turn()
    order = move(fleet)
    assert (order.state, list(map(str, order.waiting))) == (
        OrderState.QUEUED,
        ["web: update domain 0 waits for domain 1"],
    )
    assert len(fleet.events()) == 1


@pytest.mark.parametrize(
    ("state", "said"),
    [(HostState.CORDONED, "is cordoned"), (HostState.FAILED, "is failed"), (HostState.LOST, "is lost")],
)
def test_a_host_that_takes_no_machines_is_refused(state: HostState, said: str) -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2, HOST_3])
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST_2], state=state))
    fleet.turn()
    assert refusal(fleet, to=HOST_2) == (
        f'machine "web-0" cannot move: host host-2 {said}; name another host, or none'
    )
    assert move(fleet, to=HOST_3).state is OrderState.ANNOUNCED


def test_a_full_host_is_refused() -> None:
    fleet = Fleet(machine("web-0", resources={"memory": 16.0}), hosts=[HOST_2])
    fleet.draft.put_host(Host(name=HOST_2, resources={"memory": HostResource(amount=8.0)}))
    fleet.turn()
    assert refusal(fleet, to=HOST_2) == (
        'machine "web-0" cannot move: host host-2 lacks 16 memory; name another host, or none'
    )


def test_a_machine_that_cannot_move_is_refused() -> None:
    fleet = Fleet(
        machine("web-0"),
        machine("stays-0", mobility=Mobility.NONE),
        machine("live-0", mobility=Mobility.LIVE_ONLY),
        hosts=[HOST_2, HOST_3],
    )
    fleet.draft.put_host(Host(name=HOST_3, bare_metal=True))
    fleet.turn()
    assert refusal(fleet, to=HostName("host-1")) == 'machine "web-0" is on host host-1 already'
    assert "host host-3 is bare metal, and carries only itself" in refusal(fleet, to=HOST_3)
    assert "has mobility none, so it stays" in refusal(fleet, name="stays-0")
    assert "has mobility live-only, so no move redeploys it: move it live" in refusal(fleet, name="live-0")
    assert move(fleet, "live-0", live=True).state is OrderState.ANNOUNCED


def test_bare_metal_cannot_be_moved_by_name() -> None:
    fleet = Fleet(machine("metal", "metal"), hosts=[HOST_2])
    fleet.draft.put_host(Host(name=HostName("metal"), bare_metal=True))
    fleet.turn()
    assert "is bare metal, and cannot be moved" in refusal(fleet, name="metal")


def test_a_host_that_is_not_loaded_as_sound_is_refused() -> None:
    fleet = Fleet(machine("web-0"))
    assert "host host-9 takes no machines" in refusal(fleet, to=HostName("host-9"))


def test_a_waiting_move_keeps_waiting_while_its_host_takes_no_machines() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", HOST_2, domain=1), hosts=[HOST_2, HOST_3])
    other = fleet.maintain(HOST_2)
    fleet.turn()
    order = move(fleet, to=HOST_3)
    fleet.maintain(HOST_3, Action.CORDON)
    fleet.turn()
    interventions.cancel(fleet.draft, other.id, by="test")
    fleet.turn()
    waiting = fleet.advance(order.id).waiting
    assert (list(map(str, waiting)), waiting[0].room) == (
        ["web-0: cannot go yet: host host-3 is cordoned"],
        True,
    )
    fleet.maintain(HOST_3, Action.UNCORDON)
    fleet.turn()
    assert fleet.advance(order.id).state is OrderState.ANNOUNCED


def test_a_move_fails_if_its_host_cannot_take_it_and_can_be_retried() -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2, HOST_3])
    order = move(fleet, to=HOST_2)
    fleet.turn()
    fleet.maintain(HOST_2, Action.CORDON)
    fleet.pass_(10 * MINUTE)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, step.why) == (
        StepState.FAILED,
        '"web-0" cannot go there: host host-2 is cordoned; make that possible, then retry, '
        "or abandon the order",
    )
    fleet.maintain(HOST_2, Action.UNCORDON)
    fleet.turn()
    again = interventions.retry(fleet.draft, order.id, by="test", policy=fleet.policy)
    assert again.steps[0].target == HOST_2


def test_a_named_host_that_refuses_is_not_replaced() -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2, HOST_3])
    order = move(fleet, to=HOST_2)
    fleet.pass_(10 * MINUTE)
    attempt = AttemptId(order.id, MachineId("web-0"), 1)
    reports.step_refused(fleet.draft, attempt, why="it lacks the disk")
    (step,) = fleet.draft.orders[order.id].steps
    assert step.state is StepState.FAILED
    assert "host-2 cannot take it, it lacks the disk; make that possible" in step.why


def test_an_external_move_has_the_named_target() -> None:
    fleet = Fleet(machine("web-0"), hosts=[HOST_2])
    order = move(fleet, to=HOST_2, live=True, driver=EXTERNAL)
    fleet.pass_(15 * MINUTE)
    assert fleet.machine("web-0").bound_for == HOST_2
    reports.report_done(fleet.draft, order.id, by="runbook", policy=fleet.policy)
    assert fleet.machine("web-0").host == HOST_2


def test_a_driver_that_chooses_hosts_gets_the_named_one() -> None:
    policy = Policy(choosing_hosts=frozenset({"cloud"}))
    fleet = Fleet(machine("web-0"), hosts=[HOST_2], policy=policy)
    order = move(fleet, to=HOST_2, driver="cloud")
    fleet.pass_(10 * MINUTE)
    assert fleet.draft.orders[order.id].steps[0].target == HOST_2


def test_an_emergency_move_starts_at_once_beside_another_domain() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", HOST_2, domain=1), hosts=[HOST_3])
    fleet.maintain(HOST_2)
    fleet.turn()
    order = move(fleet, to=HOST_3, emergency="smoke")
    assert fleet.draft.orders[order.id].state is OrderState.STARTED
    assert len(fleet.history(Kind.PROMISE_BROKEN)) == 2


@pytest.mark.parametrize("refused", ["", "it lacks the disk"])
def test_a_move_is_announced_only_if_its_driver_agrees_to_the_named_host(refused: str) -> None:
    policy = Policy(prechecking=frozenset({"simulated"}))
    fleet = Fleet(machine("web-0"), hosts=[HOST_2, HOST_3], policy=policy)
    order = move(fleet, live=True, to=HOST_2)
    assert (fleet.events(), fleet.waits(order.id)) == (
        (),
        ["web-0: driver simulated checks whether it can go to host-2"],
    )
    asked = AttemptId(order.id, MachineId("web-0"), 1)
    move_prechecks.answered(fleet.draft, asked, Work.FREEZE, HOST_2, refused=refused)
    (step,) = fleet.advance(order.id).steps
    assert (step.state, len(fleet.events())) == ((StepState.FAILED, 0) if refused else (StepState.WAITING, 1))
    assert ("host-2 cannot take it, it lacks the disk" in step.why) is bool(refused)
