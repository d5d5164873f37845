"""Fencing: whose turn it is, what waits for it, and who may vouch instead (rule 13)."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    EXTERNAL,
    HOOK,
    SIMULATED,
    Action,
    HostName,
    HostTask,
    Kind,
    MachineId,
    MachineState,
    OrderState,
    Priority,
    StepState,
)
from forewarn.core.errors import Conflict
from forewarn.core.fleet import machines
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, HostStep, Order
from forewarn.core.orders import host_steps, interventions, reports, requests
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.policy import Policy
from tests.helpers.service.refused import refused
from tests.unit.slices import MINUTE, Fleet, machine

HOST = HostName("host-1")
FENCED = {"fenced": "its plug is pulled"}


def fleet(*, policy: Policy | None = None) -> Fleet:
    return Fleet(machine("web-0"), hosts=["host-2"], policy=policy)


def failed(there: Fleet, **terms: object) -> Order:
    return there.maintain(action=Action.FAIL, **terms)


def fence(there: Fleet, order: Order) -> HostStep:
    found = host_steps.find(there.draft.orders[order.id], HostTask.FENCE)
    assert found is not None
    return found


def recovery(there: Fleet, order: Order) -> StepState:
    return there.draft.orders[order.id].steps[0].state


def vouch(there: Fleet, *, by: str = "olga", host: HostName = HOST) -> Order:
    request = OrderRequest(by=by, terms=replace(requests.NO_TERMS, **FENCED))
    return requests.on_host(there.draft, host, Action.FAIL, request, policy=there.policy)


def attempt(there: Fleet, order: Order) -> AttemptId:
    step = fence(there, order)
    return AttemptId(order.id, step.subject, step.attempt)


def test_a_machine_of_a_failed_host_is_down_and_recovered_once_that_is_fenced() -> None:
    there = fleet()
    order = failed(there)
    assert (fence(there, order).state, recovery(there, order)) == (StepState.RUNNING, StepState.WAITING)
    assert there.machine("web-0").state is MachineState.RESTARTING
    assert "once it is fenced" in there.waits(order.id)[0]
    there.finish_host(order.id, HostTask.FENCE)
    assert recovery(there, order) is StepState.RUNNING
    assert there.waits(order.id) == []


@pytest.mark.parametrize(
    ("driver", "policy", "who"),
    [
        (SIMULATED, Policy(), SIMULATED),
        ("libvirt", Policy(fencing=frozenset({"libvirt"})), "libvirt"),
        ("libvirt", Policy(), EXTERNAL),
        (EXTERNAL, Policy(), EXTERNAL),
        (EXTERNAL, Policy(hooks=frozenset({HostTask.FENCE})), HOOK),
    ],
)
def test_a_hook_fences_or_the_driver_if_it_can_or_else_somebody_outside(
    driver: str, policy: Policy, who: str
) -> None:
    there = fleet(policy=policy)
    assert fence(there, failed(there, driver=driver)).driver == who


def test_no_hook_is_run_in_a_rehearsal() -> None:
    there = fleet(policy=Policy(hooks=frozenset(HostTask)))
    order = failed(there)
    rehearsed = replace(order, terms=replace(order.terms, rehearsal="mine"), host_steps=())
    there.draft.put_order(rehearsed)
    there.advance(order.id)
    assert fence(there, order).driver == SIMULATED


def test_those_outside_say_that_they_have_fenced_a_host() -> None:
    there = fleet()
    order = failed(there, driver=EXTERNAL)
    reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    assert (fence(there, order).state, recovery(there, order)) == (StepState.DONE, StepState.RUNNING)


def test_those_outside_say_where_a_machine_is_before_it_counts_as_recovered() -> None:
    there = fleet()
    order = failed(there, driver=EXTERNAL, **FENCED)
    with pytest.raises(Conflict, match='"web-0" is on host host-1, which failed: declare the host'):
        reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    known = there.machine("web-0")
    declared = replace(machines.spec_of(known, there.draft.groups[known.group]), host=HostName("host-2"))
    machines.put(there.draft, declared, known, by="olga")
    assert there.machine("web-0").state is MachineState.RESTARTING
    reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    assert (there.machine("web-0").host, there.machine("web-0").state) == ("host-2", MachineState.RUNNING)


def test_an_empty_host_needs_no_fence() -> None:
    there = fleet()
    order = there.maintain("host-2", Action.FAIL)
    assert (order.state, order.host_steps) == (OrderState.DONE, ())


def test_a_fence_that_fails_waits_for_a_person_who_has_it_tried_again() -> None:
    there = fleet()
    order = failed(there)
    reports.step_failed(there.draft, attempt(there, order), why="the switch does not answer")
    assert there.advance(order.id).state is OrderState.FAILED
    assert recovery(there, order) is StepState.WAITING
    assert there.waits(order.id)[0] == "fence of host host-1: failed: the switch does not answer"
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert (fence(there, order).state, fence(there, order).attempt) == (StepState.RUNNING, 2)


def test_a_fence_that_is_tried_again_by_itself_is_another_attempt_and_recorded() -> None:
    there = fleet()
    order = failed(there)
    reports.step_failed(there.draft, attempt(there, order), why="no route", again=True)
    there.advance(order.id)
    assert (fence(there, order).state, fence(there, order).attempt) == (StepState.RUNNING, 2)
    assert there.history(Kind.STEP_FAILED) == ["fence of the host, simulated: no route; it is tried again"]


def test_what_is_said_of_an_older_attempt_is_dropped() -> None:
    there = fleet()
    order = failed(there)
    first = attempt(there, order)
    reports.step_failed(there.draft, first, why="no route", again=True)
    there.advance(order.id)
    reports.step_done(there.draft, first)
    assert fence(there, order).state is StepState.RUNNING


def test_somebody_vouches_for_a_host_that_is_failed_already() -> None:
    there = fleet()
    order = failed(there)
    there.turn()
    vouched = vouch(there)
    assert (vouched.id, vouched.terms.fenced) == (order.id, "olga: its plug is pulled")
    assert (fence(there, order).state, recovery(there, order)) == (StepState.MOOT, StepState.RUNNING)
    assert there.history(Kind.HOST_FENCED) == ["confirmed by olga: its plug is pulled"]


def test_somebody_vouches_for_a_host_while_saying_that_it_has_failed() -> None:
    there = fleet()
    order = vouch(there)
    assert (order.host_steps, recovery(there, order)) == ((), StepState.RUNNING)
    assert there.history(Kind.HOST_FENCED) == ["confirmed by olga: its plug is pulled"]


def test_nobody_vouches_where_nothing_waits_for_it() -> None:
    there = fleet()
    vouch(there)
    with pytest.raises(Conflict, match="nothing waits for it to be fenced"):
        vouch(there)
    there.maintain("host-2", Action.FAIL)
    with pytest.raises(Conflict, match="nothing waits for it to be fenced"):
        vouch(there, host=HostName("host-2"))


def test_a_host_that_is_restored_meanwhile_is_fenced_all_the_same() -> None:
    there = fleet()
    order = failed(there)
    there.maintain(action=Action.RESTORE)
    there.advance(order.id)
    assert recovery(there, order) is StepState.WAITING


def test_a_failure_is_not_given_up_while_its_machines_may_still_run_there() -> None:
    there = fleet()
    order = failed(there)
    with pytest.raises(Conflict, match=r"confirm that it is off .+, or restore it, first"):
        interventions.abandon(there.draft, order.id, by="olga")


def test_a_failure_that_is_given_up_leaves_the_machines_of_a_fenced_host_down_on_no_host() -> None:
    there = Fleet(machine("web-0"))
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert recovery(there, order) is StepState.FAILED
    interventions.abandon(there.draft, order.id, by="olga")
    assert not there.draft.orders[order.id].open
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.STOPPED, None)


def test_a_failure_that_is_given_up_leaves_machines_on_their_restored_host_that_was_never_fenced() -> None:
    there = fleet()
    order = failed(there)
    there.maintain(action=Action.RESTORE)
    waits = there.order("web-0")
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, attempt(there, order))
    there.advance(order.id)
    assert not there.draft.orders[order.id].open
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.RUNNING, "host-1")
    assert there.draft.orders[waits.id].open


def test_what_waits_for_a_machine_is_closed_when_its_recovery_is_given_up() -> None:
    there = Fleet(machine("web-0"))
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    there.maintain(action=Action.RESTORE)
    waits = there.order("web-0")
    interventions.abandon(there.draft, order.id, by="olga")
    assert there.draft.orders[waits.id].state is OrderState.CANCELLED
    assert there.draft.orders[waits.id].why == f"down, and not recovered (order {order.id})"


def test_a_host_that_fails_once_more_has_its_machines_recovered_once_that_is_fenced() -> None:
    there = fleet()
    before = failed(there)
    there.maintain(action=Action.RESTORE)
    order = failed(there)
    assert not there.draft.orders[before.id].open
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.RESTARTING, HOST)
    assert recovery(there, order) is StepState.WAITING
    vouch(there)
    assert recovery(there, order) is StepState.RUNNING


def test_a_machine_that_waits_to_be_recovered_can_be_terminated_instead() -> None:
    there = fleet()
    failed(there)
    order = there.order("web-0", Action.TERMINATE)
    assert there.draft.orders[order.id].state is OrderState.ANNOUNCED


def test_a_machine_that_comes_to_a_restored_host_is_not_hit_by_its_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1", "host-2"))
    order = failed(there)
    there.maintain(action=Action.RESTORE)
    there.draft.put_machine(replace(there.machine("web-1"), host=HOST))
    order = there.advance(order.id)
    assert [step.name for step in order.steps] == ["web-0"]
    assert there.machine("web-1").state is MachineState.RUNNING


def test_a_machine_that_comes_to_a_failed_host_is_hit_by_its_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1", "host-2"))
    order = failed(there)
    there.draft.put_machine(replace(there.machine("web-1"), host=HOST))
    assert [step.name for step in there.advance(order.id).steps] == ["web-0", "web-1"]


def evicted_while_failed(*others: Machine) -> tuple[Fleet, Order, Order]:
    """A host fails that one machine is just being evicted from."""
    there = Fleet(machine("web-0", priority=Priority.SPOT), *others, hosts=["host-2"])
    eviction = there.order("web-0", Action.EVICT)
    there.pass_(15 * MINUTE)
    assert there.running(eviction.id)
    return there, eviction, failed(there)


def test_a_failure_is_open_until_those_have_left_who_were_just_leaving() -> None:
    there, eviction, order = evicted_while_failed()
    assert (order.state, order.steps) == (OrderState.STARTED, ())
    assert there.waits(order.id)[-1] == f"web-0: waits for order {eviction.id} (evict) to finish with it"
    reports.step_done(there.draft, AttemptId(eviction.id, MachineId("web-0"), 1))
    assert there.draft.orders[order.id].due_at == there.now
    assert there.advance(order.id).state is OrderState.DONE
    assert fence(there, order).state is StepState.MOOT


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("others", [(), (machine("db-0"),)])
def test_an_eviction_that_nobody_answers_for_is_done_once_its_host_is_fenced(
    others: tuple[Machine, ...], *, vouched: bool
) -> None:
    there, eviction, order = evicted_while_failed(*others)
    if vouched:
        vouch(there)
    else:
        there.finish_host(order.id, HostTask.FENCE)
    assert there.draft.orders[eviction.id].steps[0].state is StepState.DONE
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.STOPPED, None)
    assert "web-0" not in {step.name for step in there.advance(order.id).steps}
    assert there.advance(order.id).open is bool(others)


def test_an_eviction_is_done_if_somebody_vouches_for_its_host_from_the_start() -> None:
    there = Fleet(machine("web-0", priority=Priority.SPOT))
    eviction = there.order("web-0", Action.EVICT)
    there.pass_(15 * MINUTE)
    assert vouch(there).state is OrderState.DONE
    assert there.draft.orders[eviction.id].steps[0].state is StepState.DONE


def test_a_termination_on_a_fenced_host_is_done_at_once_and_nothing_is_recovered() -> None:
    there = Fleet(machine("web-0"))
    order = failed(there, **FENCED)
    assert recovery(there, order) is StepState.FAILED  # there is no other host
    end = there.order("web-0", Action.TERMINATE)
    there.approve(there.events(end.id)[0])
    assert there.draft.orders[end.id].steps[0].state is StepState.DONE
    assert there.advance(order.id).state is OrderState.DONE
    assert recovery(there, order) is StepState.MOOT


def test_a_machine_whose_termination_is_cancelled_is_on_its_failed_host_until_that_is_fenced() -> None:
    there = fleet()
    order = failed(there)
    end = there.order("web-0", Action.TERMINATE)
    interventions.cancel(there.draft, end.id, by="olga")
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.RESTARTING, HOST)
    with pytest.raises(Conflict, match="which is failed: it is recovered first"):
        there.order("web-0", Action.START)
    there.finish_host(order.id, HostTask.FENCE)
    assert recovery(there, order) is StepState.RUNNING


def test_a_machine_that_is_terminated_on_a_failed_host_is_not_recovered() -> None:
    there = fleet()
    order = failed(there)
    end = there.order("web-0", Action.TERMINATE)
    there.approve(there.events(end.id)[0])
    assert there.running(end.id)
    there.finish(end.id)
    assert recovery(there, order) is StepState.MOOT
    assert there.advance(order.id).state is OrderState.DONE


@pytest.mark.parametrize("others", [(), (machine("db-0"),)])
def test_a_machine_whose_eviction_from_a_failed_host_fails_is_recovered(others: tuple[Machine, ...]) -> None:
    there, eviction, order = evicted_while_failed(*others)
    there.fail(eviction.id)
    assert there.draft.orders[order.id].due_at == there.now
    order = there.advance(order.id)
    assert {step.name: step.state for step in order.steps}["web-0"] is StepState.WAITING
    assert there.machine("web-0").state is MachineState.RESTARTING
    assert [event.resources[0].name for event in there.events(order.id)][-1] == "web-0"
    vouch(there)
    assert "web-0" in {step.name for step in there.running(order.id)}


def test_a_failure_that_waits_for_an_eviction_is_neither_cancelled_nor_abandoned() -> None:
    there, eviction, order = evicted_while_failed()
    with pytest.raises(Conflict, match="too late to cancel"):
        interventions.cancel(there.draft, order.id, by="olga")
    with pytest.raises(Conflict, match="not fenced: confirm that it is off"):
        interventions.abandon(there.draft, order.id, by="olga")
    there.maintain(action=Action.RESTORE)
    order = there.advance(order.id)
    assert (order.state, there.draft.orders[eviction.id].open) == (OrderState.DONE, True)
    assert fence(there, order).state is StepState.MOOT


def test_that_a_driver_cannot_tell_is_recorded_once_and_no_failure() -> None:
    there = fleet()
    order = failed(there)
    for _ in range(2):
        reports.step_unknown(there.draft, attempt(there, order), why="no answer")
    there.advance(order.id)
    assert fence(there, order).state is StepState.RUNNING
    assert there.history(Kind.STEP_UNKNOWN) == ["fence of the host, simulated: no answer"]
    assert "fence of host host-1: its state is unknown: no answer" in there.waits(order.id)


def test_a_driver_that_names_another_host_for_a_fence_is_not_heard_on_that() -> None:
    there = fleet()
    order = failed(there)
    reports.step_refused(there.draft, attempt(there, order), why="full")
    reports.step_done(there.draft, attempt(there, order), host=HostName("nowhere"))
    assert fence(there, order).state is StepState.DONE


def test_nobody_outside_has_a_say_where_a_driver_does_the_work() -> None:
    there = fleet()
    order = there.maintain()
    with refused(Conflict, match="carried out by driver simulated: it takes no outside reports"):
        reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    failure = failed(there)
    with refused(Conflict, match="carried out by driver simulated: it takes no outside reports"):
        reports.report_done(there.draft, failure.id, by="olga", policy=there.policy)
