"""Retries of a failed move, up to the point where a person must decide."""

from dataclasses import replace

from forewarn.core.basic_types import (
    EventStatus,
    EventType,
    HostName,
    HostState,
    Kind,
    MachineState,
    Mobility,
    OrderState,
    StepState,
    Work,
)
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order, Step
from forewarn.core.orders import interventions, reports
from forewarn.core.policy import Policy
from tests.unit.slices import MINUTE, Fleet, machine

HOST = HostName("host-1")
OTHERS = ("host-2", "host-3")


def live(name: str) -> Machine:
    return machine(name, mobility=Mobility.LIVE)


def leaving(*machines: Machine, **more: object) -> tuple[Fleet, Order]:
    """Start the evacuation of a host."""
    fleet = Fleet(*machines, hosts=OTHERS, **more)  # type: ignore[arg-type]
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    return fleet, order


def step(fleet: Fleet, order: Order, name: str = "a-0") -> Step:
    return next(each for each in fleet.draft.orders[order.id].steps if each.name == name)


def test_a_failed_move_is_retried_within_its_event_on_another_host() -> None:
    fleet, order = leaving(live("a-0"))
    (event,), first = fleet.events(), step(fleet, order)
    fleet.fail(order.id)
    again = step(fleet, order)
    assert (again.state, again.work, again.attempt) == (StepState.RUNNING, Work.FREEZE, 2)
    assert {first.target, again.target} == {"host-2", "host-3"}
    assert fleet.events() == (event,)
    assert fleet.history(Kind.ORDER_RETRIED) == ["is moved again, attempt 2 of 2"]
    assert fleet.draft.orders[order.id].state is OrderState.STARTED


def test_a_failed_move_is_retried_on_the_same_host_if_there_is_no_other() -> None:
    fleet = Fleet(live("a-0"), hosts=("host-2",))
    order = fleet.service()
    fleet.pass_(15 * MINUTE)
    fleet.fail(order.id)
    assert step(fleet, order).target == "host-2"


def test_a_machine_that_cannot_move_live_is_redeployed_with_its_own_notice() -> None:
    fleet, order = leaving(live("a-0"))
    fleet.fail(order.id)
    fleet.fail(order.id)
    lowered = step(fleet, order)
    assert (lowered.state, lowered.work, lowered.moves) == (StepState.WAITING, Work.REDEPLOY, True)
    assert lowered.lowered_from is Work.FREEZE
    assert fleet.machine("a-0").state is MachineState.RUNNING
    assert [event.type for event in fleet.events()] == [EventType.FREEZE]
    assert "a-0: could not be moved live: it is announced again when that event has ended" in fleet.waits(
        order.id
    )
    fleet.pass_(2 * MINUTE)
    (event,) = fleet.events()
    assert (event.type, event.status) == (EventType.REDEPLOY, EventStatus.SCHEDULED)
    assert event.not_before - event.announced_at >= 10 * MINUTE
    assert not any("could not be moved live" in why for why in fleet.waits(order.id))
    assert step(fleet, order).attempt == 3
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    assert fleet.machine("a-0").host in OTHERS
    said = fleet.history(Kind.ORDER_RETRIED)
    assert said[-1] == "cannot be moved live: it is redeployed, with notice of its own"


def live_only(name: str) -> Machine:
    return machine(name, mobility=Mobility.LIVE_ONLY)


def test_a_live_only_machine_keeps_running_and_its_event_ends() -> None:
    fleet, order = leaving(live_only("a-0"))
    fleet.fail(order.id)
    fleet.fail(order.id)
    assert (step(fleet, order).state, step(fleet, order).work) == (StepState.WAITING, Work.FREEZE)
    assert fleet.machine("a-0").state is MachineState.RUNNING
    assert fleet.waits(order.id) == [
        "a-0: it is live-only, so it is not redeployed and stays; "
        "its live move is tried again from 2026-01-05T12:20:00Z on: it burns"
    ]
    assert fleet.draft.orders[order.id].state is OrderState.STARTED
    fleet.pass_(2 * MINUTE)
    assert fleet.events() == ()
    fleet.pass_(2 * MINUTE)
    assert fleet.events() == ()
    assert not fleet.running(order.id)


def test_a_live_only_machine_is_announced_again_after_growing_delays() -> None:
    fleet, order = leaving(live_only("a-0"))
    for _ in range(2):
        fleet.fail(order.id)
    for minutes in (5, 10, 20):
        assert fleet.draft.orders[order.id].due_at is not None
        fleet.pass_(minutes * MINUTE)
        (event,) = fleet.events()
        assert (event.type, event.status) == (EventType.FREEZE, EventStatus.SCHEDULED)
        assert event.not_before - event.announced_at >= 15 * MINUTE
        assert not any("live-only" in why for why in fleet.waits(order.id))
        fleet.pass_(15 * MINUTE)
        assert [each.name for each in fleet.running(order.id)] == ["a-0"]
        if minutes < 20:
            fleet.fail(order.id)
    fleet.finish(order.id)
    assert fleet.machine("a-0").host in OTHERS
    assert len(fleet.history(Kind.ORDER_RETRIED)) == 4


def test_a_resting_machine_waits_until_the_shared_event_has_ended() -> None:
    fleet, order = leaving(
        machine("web-0", mobility=Mobility.LIVE_ONLY), machine("web-1", mobility=Mobility.LIVE_ONLY)
    )
    for _ in range(2):
        fail(fleet, order, "web-0")
    fleet.pass_(6 * MINUTE)
    why = "web-0: could not be moved live: it is announced again when that event has ended"
    assert why in fleet.waits(order.id)
    assert [each.name for each in fleet.running(order.id)] == ["web-1"]
    fleet.finish(order.id)
    fleet.pass_(MINUTE)
    (event,) = fleet.events()
    assert [each.name for each in event.resources] == ["web-0"]


def test_a_live_only_machine_that_every_host_refuses_rests_too() -> None:
    fleet, order = leaving(live_only("a-0"))
    while (refused := step(fleet, order)).state is StepState.RUNNING:
        reports.step_refused(fleet.draft, AttemptId(order.id, refused.machine, refused.attempt), why="old")
        fleet.advance(order.id)
    assert (step(fleet, order).state, step(fleet, order).work) == (StepState.WAITING, Work.FREEZE)
    fleet.pass_(6 * MINUTE)
    assert [event.status for event in fleet.events()] == [EventStatus.SCHEDULED]


def fail(fleet: Fleet, order: Order, name: str) -> None:
    """Fail the move of one machine."""
    failed = step(fleet, order, name)
    reports.step_failed(fleet.draft, AttemptId(order.id, failed.machine, failed.attempt), why="it burns")
    fleet.advance(order.id)


def test_other_machines_of_the_event_go_on() -> None:
    fleet, order = leaving(machine("web-0", mobility=Mobility.LIVE), machine("web-1", mobility=Mobility.LIVE))
    for _ in range(2):
        fail(fleet, order, "web-0")
    fleet.pass_(5 * MINUTE)
    assert [event.type for event in fleet.events()] == [EventType.FREEZE]
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    (event,) = fleet.events()
    assert (event.type, [each.name for each in event.resources]) == (EventType.REDEPLOY, ["web-0"])


def test_a_redeploy_that_fails_too_waits_for_a_person() -> None:
    fleet, order = leaving(machine("a-0"))
    fleet.fail(order.id)
    assert fleet.draft.orders[order.id].state is OrderState.STARTED
    fleet.fail(order.id)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    assert fleet.waits(order.id) == ["a-0: failed: it burns"]
    fleet.advance(order.id)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    interventions.retry(fleet.draft, order.id, by="test", policy=fleet.policy)
    again = step(fleet, order)
    assert (again.state, again.failures, again.failed_on) == (StepState.RUNNING, 0, ())


def test_the_number_of_move_retries_is_a_setting() -> None:
    fleet, order = leaving(machine("a-0"), policy=Policy(move_retries=0))
    fleet.fail(order.id)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED


def test_a_machine_that_no_host_can_take_fails_at_once() -> None:
    fleet = Fleet(live("a-0"), machine("b-0"), hosts=("host-2",))
    order = fleet.service()
    other = fleet.draft.hosts[HostName("host-2")]
    fleet.draft.put_host(replace(other, state=HostState.CORDONED))
    fleet.pass_(15 * MINUTE)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    assert fleet.history(Kind.ORDER_RETRIED) == []


def test_a_live_move_that_every_host_refuses_becomes_a_redeploy() -> None:
    fleet, order = leaving(live("a-0"))
    while (refused := step(fleet, order)).state is StepState.RUNNING:
        reports.step_refused(fleet.draft, AttemptId(order.id, refused.machine, refused.attempt), why="old")
        fleet.advance(order.id)
    assert step(fleet, order).work is Work.REDEPLOY


def test_a_failed_external_move_is_not_retried() -> None:
    fleet = Fleet(live("a-0"), hosts=OTHERS)
    order = fleet.service(driver="external")
    fleet.pass_(15 * MINUTE)
    reports.report_failed(fleet.draft, order.id, by="test", why="it burns", policy=fleet.policy)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED


# A driver that chooses hosts itself


def placed_elsewhere(*machines: Machine) -> tuple[Fleet, Order]:
    fleet = Fleet(*machines, hosts=OTHERS, policy=Policy(choosing_hosts=frozenset({"nova"})))
    order = fleet.service(driver="nova")
    fleet.pass_(15 * MINUTE)
    return fleet, order


def test_a_driver_that_chooses_hosts_is_not_given_one() -> None:
    fleet, order = placed_elsewhere(live("a-0"))
    moving = step(fleet, order)
    assert (moving.state, moving.target) == (StepState.RUNNING, None)
    reports.step_done(fleet.draft, AttemptId(order.id, moving.machine, 1), host=HostName("host-3"))
    assert fleet.machine("a-0").host == "host-3"


def test_a_failed_move_of_such_a_driver_is_retried_and_then_redeployed() -> None:
    fleet, order = placed_elsewhere(live("a-0"))
    fleet.fail(order.id)
    assert (step(fleet, order).state, step(fleet, order).attempt) == (StepState.RUNNING, 2)
    fleet.fail(order.id)
    lowered = step(fleet, order)
    assert (lowered.work, lowered.state, lowered.failed_on) == (Work.REDEPLOY, StepState.WAITING, ())


def test_such_a_driver_is_given_the_host_that_machines_return_to() -> None:
    fleet = Fleet(live("a-0"), hosts=OTHERS, policy=Policy(choosing_hosts=frozenset({"nova"})))
    order = fleet.service(driver="nova", host_driver="simulated", returning=True)
    fleet.pass_(15 * MINUTE)
    reports.step_done(
        fleet.draft, AttemptId(order.id, step(fleet, order).machine, 1), host=HostName("host-2")
    )
    for _ in range(3):
        fleet.pass_(15 * MINUTE)
        fleet.finish_host(order.id)
    back = [each for each in fleet.draft.orders[order.id].steps if each.state is StepState.RUNNING]
    assert [each.target for each in back] == [HOST]
