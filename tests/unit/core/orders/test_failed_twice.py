"""Hosts that fail again, or fail while machines come to them: nobody is recovered before each is fenced."""

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
    """One machine, and two hosts where it could go."""
    return Fleet(machine("web-0"), hosts=["host-2", "host-3", *more])


def recovered(there: Fleet) -> Order:
    """The failure of a host that is fenced; its machine is on its way to another one."""
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert there.running(order.id)[0].target == ELSEWHERE
    return order


def failed_again(there: Fleet) -> tuple[Order, Order]:
    """The failures of a host that fails once more while its machine is recovered."""
    before = recovered(there)
    there.maintain(action=Action.RESTORE)
    return before, there.maintain(action=Action.FAIL)


def attempt(order: Order, name: str = "web-0") -> AttemptId:
    step = next(each for each in order.steps if each.name == name)
    return AttemptId(order.id, step.machine, step.attempt)


def states(there: Fleet, order: Order) -> list[StepState]:
    return [step.state for step in there.draft.orders[order.id].steps]


def test_a_recovery_goes_on_when_its_host_fails_once_more() -> None:
    there = fleet()
    before, order = failed_again(there)
    assert states(there, before) == [StepState.RUNNING]
    assert (order.steps, order.state) == ((), OrderState.STARTED)
    assert there.waits(order.id)[-1] == f"web-0: waits for order {before.id} (fail) to finish with it"
    there.finish(before.id)
    assert there.machine("web-0").host == ELSEWHERE
    assert there.draft.orders[order.id].state is OrderState.DONE


def test_a_recovery_that_fails_is_for_the_newest_failure_of_its_host() -> None:
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


def test_a_recovery_that_is_refused_or_called_off_is_for_the_newest_failure_too() -> None:
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


def test_machines_that_waited_for_the_older_failure_wait_for_the_newer_one() -> None:
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


def test_who_vouches_speaks_of_the_newest_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    before = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    reports.step_failed(there.draft, attempt(before, "web-1"), why="it burns")
    there.maintain(action=Action.RESTORE)
    order = there.maintain(action=Action.FAIL)
    vouched = there.maintain(action=Action.FAIL, fenced="again")
    assert (vouched.id, states(there, order)) == (order.id, [StepState.RUNNING])


def test_a_newer_failure_is_not_given_up_while_the_older_one_is_at_its_machines() -> None:
    there = fleet()
    before, order = failed_again(there)
    there.maintain(action=Action.FAIL, fenced="again")
    with pytest.raises(Conflict, match=rf"web-0: waits for order {before.id} .+ or restore the host, first"):
        interventions.abandon(there.draft, order.id, by="olga")
    interventions.abandon(there.draft, before.id, by="olga")
    assert there.draft.orders[before.id].terms.abandoned_by == "olga"


def test_a_machine_that_comes_back_to_its_restored_host_is_recovered_when_that_fails() -> None:
    there = Fleet(machine("web-0"))
    before = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    there.maintain(action=Action.RESTORE)
    there.turn()
    interventions.retry(there.draft, before.id, by="olga", policy=there.policy)
    assert there.running(before.id)[0].target == "host-1"
    order = there.maintain(action=Action.FAIL)
    assert not there.draft.orders[before.id].open
    assert (states(there, order), there.machine("web-0").host) == ([StepState.WAITING], "host-1")


def test_a_machine_that_is_recovered_to_a_host_that_fails_is_recovered_from_there() -> None:
    there = fleet()
    before = recovered(there)
    order = there.maintain("host-2", Action.FAIL)
    assert (there.machine("web-0").host, there.machine("web-0").state) == (
        ELSEWHERE,
        MachineState.RESTARTING,
    )
    assert (states(there, before), states(there, order)) == ([StepState.MOOT], [StepState.WAITING])
    assert there.advance(before.id).state is OrderState.DONE
    reports.step_done(there.draft, attempt(before))  # what is said of it now is not heard
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target == "host-3"


def test_who_waited_for_a_machine_that_was_recovered_to_a_failed_host_is_looked_at() -> None:
    there = fleet()
    recovered(there)
    end = there.order("web-0", Action.TERMINATE)
    there.approve(there.events(end.id)[0])
    there.turn(MINUTE)
    assert not there.running(end.id)
    there.maintain("host-2", Action.FAIL)
    assert there.draft.orders[end.id].due_at == there.now


def test_the_newest_failure_is_over_when_a_machine_of_it_goes_down_with_another_host() -> None:
    there = fleet()
    _, order = failed_again(there)
    there.maintain("host-2", Action.FAIL)
    assert there.draft.orders[order.id].due_at == there.now
    assert there.advance(order.id).state is OrderState.DONE


def test_a_machine_that_is_started_on_a_host_that_fails_is_recovered_from_there() -> None:
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
    """A host fails that a machine is just being moved to."""
    move = there.maintain(work=Work.REDEPLOY, emergency="fire", notice=0 * MINUTE)
    there.pass_(MINUTE)
    assert there.running(move.id)[0].target == ELSEWHERE
    return move, there.maintain("host-2", Action.FAIL)


def test_a_failure_waits_for_a_machine_that_is_moved_to_its_host_and_recovers_it() -> None:
    there = fleet()
    move, order = moved_while_failed(there)
    assert there.waits(order.id) == [f"web-0: waits for order {move.id} (maintenance) to finish with it"]
    assert order.host_steps == ()
    reports.step_done(there.draft, attempt(move))
    there.advance(order.id)
    assert (there.machine("web-0").host, states(there, order)) == (ELSEWHERE, [StepState.WAITING])
    assert there.machine("web-0").state is MachineState.RESTARTING


def test_a_failure_waits_for_nobody_who_stays_where_it_was() -> None:
    there = fleet()
    move, order = moved_while_failed(there)
    there.turn()
    there.fail(move.id)
    assert ELSEWHERE in there.draft.changes().hosts_to_recheck  # so that it is looked at
    assert there.advance(order.id).state is OrderState.DONE
    assert there.machine("web-0").host == "host-1"


def test_a_failure_is_looked_at_when_a_machine_leaves_the_fleet_that_was_on_its_way_there() -> None:
    there = fleet()
    moved_while_failed(there)
    there.turn()
    there.draft.machines.clear()
    assert ELSEWHERE in there.draft.changes().hosts_to_recheck


def test_nothing_is_gone_from_a_host_that_has_not_failed() -> None:
    there = fleet()
    assert not fencing.is_gone(there.draft, None)
    assert not fencing.is_gone(there.draft, HostName("host-1"))
    there.maintain(action=Action.FAIL)
    assert not fencing.is_gone(there.draft, HostName("host-1"))
    there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert fencing.is_gone(there.draft, HostName("host-1"))
    assert there.history(Kind.HOST_FENCED) == ["vouched for by test: its plug is pulled"]


# A machine that was being moved when its host failed may have arrived


def moving(there: Fleet) -> HostName:
    """A machine on its way to another host, which is not the emptiest any more, when its own one fails."""
    order = there.order("web-0", Action.REDEPLOY)
    there.approve(there.events(order.id)[0])
    (step,) = there.running(order.id)
    assert step.target is not None
    return step.target


def test_a_machine_that_was_moved_when_its_host_failed_is_recovered_where_it_was_to_go() -> None:
    there = fleet()
    target = moving(there)
    order = there.maintain(action=Action.FAIL)
    assert [(step.state, step.target) for step in order.steps] == [(StepState.WAITING, target)]
    assert there.machine("web-0").bound_for == target
    there.turn()
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target == target


def test_a_machine_that_was_moved_is_recovered_elsewhere_if_its_target_is_not_sound_any_more() -> None:
    there = fleet()
    target = moving(there)
    order = there.maintain(action=Action.FAIL)
    there.maintain(target, Action.CORDON)
    there.finish_host(order.id, HostTask.FENCE)
    assert there.running(order.id)[0].target not in (None, target)


def test_a_place_that_was_kept_for_a_broken_off_move_is_given_back_with_its_recovery() -> None:
    there = fleet()
    moving(there)
    order = there.maintain(action=Action.FAIL)
    there.maintain(action=Action.RESTORE)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/fence", 1))
    there.advance(order.id)
    assert there.machine("web-0").bound_for is None
