"""Hosts that fail again, or fail while machines arrive: recovery waits until each of them is fenced."""

import pytest

from forewarn.core.basic_types import (
    Action,
    HostName,
    HostTask,
    Kind,
    MachineState,
    OrderState,
    Priority,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import fencing, interventions, reports
from tests.unit.slices import MINUTE, Fleet, machine

ELSEWHERE = HostName("host-2")


def fleet(*more: str) -> Fleet:
    """Create one machine and two possible targets."""
    return Fleet(machine("web-0"), hosts=["host-2", "host-3", *more])


def recovered(there: Fleet) -> Order:
    """Fail and fence a host; its machine is being recovered to another one."""
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert there.running(order.id)[0].target == ELSEWHERE
    return order


def failed_again(there: Fleet) -> tuple[Order, Order]:
    """Fail a host again while its machine is being recovered."""
    before = recovered(there)
    there.maintain(action=Action.RESTORE)
    return before, there.maintain(action=Action.FAIL)


def attempt(order: Order, name: str = "web-0") -> AttemptId:
    step = next(each for each in order.steps if each.name == name)
    return AttemptId(order.id, step.machine, step.attempt)


def states(there: Fleet, order: Order) -> list[StepState]:
    return [step.state for step in there.draft.orders[order.id].steps]


def test_a_recovery_under_way_goes_on_when_its_host_fails_again() -> None:
    there = fleet()
    before, order = failed_again(there)
    assert states(there, before) == [StepState.RUNNING]
    assert (order.steps, order.state) == ((), OrderState.STARTED)
    assert there.waits(order.id)[-1] == f"web-0: waits for order {before.id} (fail) to finish with it"
    there.finish(before.id)
    assert there.machine("web-0").host == ELSEWHERE
    assert there.draft.orders[order.id].state is OrderState.DONE


def test_a_failed_recovery_moves_to_the_newest_failure_of_its_host() -> None:
    there = fleet()
    before, order = failed_again(there)
    there.fail(before.id)
    assert states(there, before) == [StepState.MOOT]
    assert (there.machine("web-0").host, there.machine("web-0").state) == (
        "host-1",
        MachineState.RESTARTING,
    )
    there.advance(order.id)
    assert states(there, order) == [StepState.WAITING]
    there.finish_host(order.id, HostTask.FENCE)
    assert states(there, order) == [StepState.RUNNING]


def test_a_refused_or_cancelled_recovery_moves_to_the_newest_failure() -> None:
    for report in (
        reports.step_cancelled,
        lambda *at: reports.step_refused(*at, why="it is full"),
        lambda *at: reports.step_target_unreachable(*at, why="no route to it"),
    ):
        there = fleet()
        before, order = failed_again(there)
        report(there.draft, attempt(before))
        assert states(there, before) == [StepState.MOOT]
        there.advance(order.id)
        assert (states(there, order), there.machine("web-0").host) == ([StepState.WAITING], "host-1")


def test_machines_that_wait_for_the_older_failure_wait_for_the_newer() -> None:
    there = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    before = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    reports.step_failed(there.draft, attempt(before, "web-1"), why="it burns")
    there.maintain(action=Action.RESTORE)
    order = there.maintain(action=Action.FAIL)
    assert states(there, before) == [StepState.RUNNING, StepState.MOOT]
    assert [(step.name, step.state) for step in order.steps] == [("web-1", StepState.WAITING)]
    assert there.machine("web-1").state is MachineState.RESTARTING
    assert there.advance(before.id).steps[1].begun_at is not None
    assert states(there, before) == [StepState.RUNNING, StepState.MOOT]


def test_a_confirmation_applies_to_the_newest_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    before = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    reports.step_failed(there.draft, attempt(before, "web-1"), why="it burns")
    there.maintain(action=Action.RESTORE)
    order = there.maintain(action=Action.FAIL)
    vouched = there.maintain(action=Action.FAIL, fenced="again")
    assert (vouched.id, states(there, order)) == (order.id, [StepState.RUNNING])


def test_a_newer_failure_cannot_be_abandoned_while_the_older_works_on_its_machines() -> None:
    there = fleet()
    before, order = failed_again(there)
    there.maintain(action=Action.FAIL, fenced="again")
    with pytest.raises(Conflict, match=rf"web-0: waits for order {before.id} .+ or restore the host, first"):
        interventions.abandon(there.draft, order.id, by="olga")
    interventions.abandon(there.draft, before.id, by="olga")
    assert there.draft.orders[before.id].terms.abandoned_by == "olga"


def test_a_machine_that_returned_to_its_restored_host_is_recovered_when_that_fails_again() -> None:
    there = Fleet(machine("web-0"))
    before = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    there.maintain(action=Action.RESTORE)
    there.turn()
    interventions.retry(there.draft, before.id, by="olga", policy=there.policy)
    assert there.running(before.id)[0].target == "host-1"
    order = there.maintain(action=Action.FAIL)
    assert not there.draft.orders[before.id].open
    assert (states(there, order), there.machine("web-0").host) == ([StepState.WAITING], "host-1")


def test_a_machine_recovered_to_a_host_that_fails_is_recovered_from_there() -> None:
    there = fleet()
    before = recovered(there)
    order = there.maintain("host-2", Action.FAIL)
    assert (there.machine("web-0").host, there.machine("web-0").state) == (
        ELSEWHERE,
        MachineState.RESTARTING,
    )
    assert (states(there, before), states(there, order)) == ([StepState.MOOT], [StepState.WAITING])
    assert there.advance(before.id).state is OrderState.DONE
    reports.step_done(there.draft, attempt(before))  # answers about it are now ignored
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target == "host-3"


def test_an_order_that_waits_for_a_machine_is_woken_when_its_recovery_ends() -> None:
    there = fleet()
    recovered(there)
    end = there.order("web-0", Action.TERMINATE)
    there.approve(there.events(end.id)[0])
    there.turn(MINUTE)
    assert not there.running(end.id)
    there.maintain("host-2", Action.FAIL)
    assert there.draft.orders[end.id].due_at == there.now


def test_the_newest_failure_ends_when_its_machine_fails_with_another_host() -> None:
    there = fleet()
    _, order = failed_again(there)
    there.maintain("host-2", Action.FAIL)
    assert there.draft.orders[order.id].due_at == there.now
    assert there.advance(order.id).state is OrderState.DONE


def test_a_machine_that_starts_on_a_failing_host_is_recovered_from_there() -> None:
    there = Fleet(machine("web-0", priority=Priority.SPOT), hosts=["host-2"])
    eviction = there.order("web-0", Action.EVICT)
    there.pass_(15 * MINUTE)
    there.finish(eviction.id)
    there.pass_(2 * MINUTE)
    start = there.order("web-0", Action.START)
    (step,) = there.running(start.id)
    order = there.maintain(f"{step.target}", Action.FAIL)
    assert there.draft.orders[start.id].state is OrderState.CANCELLED
    assert (there.machine("web-0").host, states(there, order)) == (step.target, [StepState.WAITING])
    assert [event.resources[0].name for event in there.events(order.id)] == ["web-0"]


def moved_while_failed(there: Fleet) -> tuple[Order, Order]:
    """Fail a host while a machine moves to it."""
    move = there.maintain(work=Work.REDEPLOY, emergency="fire", notice=0 * MINUTE)
    there.pass_(MINUTE)
    assert there.running(move.id)[0].target == ELSEWHERE
    return move, there.maintain("host-2", Action.FAIL)


def test_a_failure_waits_for_a_machine_that_moves_to_its_host_and_recovers_it() -> None:
    there = fleet()
    move, order = moved_while_failed(there)
    assert there.waits(order.id) == [f"web-0: waits for order {move.id} (maintenance) to finish with it"]
    assert order.host_steps == ()
    reports.step_done(there.draft, attempt(move))
    there.advance(order.id)
    assert (there.machine("web-0").host, states(there, order)) == (ELSEWHERE, [StepState.WAITING])
    assert there.machine("web-0").state is MachineState.RESTARTING


def test_a_failure_does_not_wait_for_a_machine_whose_move_failed() -> None:
    there = fleet()
    move, order = moved_while_failed(there)
    there.turn()
    there.fail(move.id)
    assert ELSEWHERE in there.draft.changes().hosts_to_recheck  # so that it is advanced
    assert there.advance(order.id).state is OrderState.DONE
    assert there.machine("web-0").host == "host-1"


def test_a_failure_is_woken_when_a_machine_on_its_way_leaves_the_fleet() -> None:
    there = fleet()
    moved_while_failed(there)
    there.turn()
    there.draft.machines.clear()
    assert ELSEWHERE in there.draft.changes().hosts_to_recheck


def test_a_host_that_has_not_failed_is_not_fenced() -> None:
    there = fleet()
    assert not fencing.is_host_fenced(there.draft, None)
    assert not fencing.is_host_fenced(there.draft, HostName("host-1"))
    there.maintain(action=Action.FAIL)
    assert not fencing.is_host_fenced(there.draft, HostName("host-1"))
    there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert fencing.is_host_fenced(there.draft, HostName("host-1"))
    assert there.history(Kind.HOST_FENCED) == ["confirmed by test: its plug is pulled"]


# A machine that was moving when its host failed may have arrived


def moving(there: Fleet) -> HostName:
    """Fail the host of a machine that moves to a host which is no longer the emptiest."""
    order = there.order("web-0", Action.REDEPLOY)
    there.approve(there.events(order.id)[0])
    (step,) = there.running(order.id)
    assert step.target is not None
    return step.target


def test_a_machine_that_was_moving_when_its_host_failed_is_recovered_on_its_target() -> None:
    there = fleet()
    target = moving(there)
    order = there.maintain(action=Action.FAIL)
    assert [(step.state, step.target) for step in order.steps] == [(StepState.WAITING, target)]
    assert there.machine("web-0").bound_for == target
    there.turn()
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target == target


def test_a_machine_that_was_moving_is_recovered_elsewhere_if_its_target_is_unsound() -> None:
    there = fleet()
    target = moving(there)
    order = there.maintain(action=Action.FAIL)
    there.maintain(target, Action.CORDON)
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target not in (None, target)


def test_a_reservation_for_an_interrupted_move_is_released_with_its_recovery() -> None:
    there = fleet()
    moving(there)
    order = there.maintain(action=Action.FAIL)
    there.maintain(action=Action.RESTORE)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/fence", 1))
    there.advance(order.id)
    assert there.machine("web-0").bound_for is None
