"""Fencing: its driver, the machines that wait for it, and the operator's confirmation (rule 13)."""

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
from forewarn.core.orders import host_steps, interventions, order_requests, reports
from forewarn.core.orders.order_requests import OrderRequest
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
    request = OrderRequest(by=by, terms=replace(order_requests.NO_TERMS, **FENCED))
    return order_requests.on_host(there.draft, host, Action.FAIL, request, policy=there.policy)


def attempt(there: Fleet, order: Order) -> AttemptId:
    step = fence(there, order)
    return AttemptId(order.id, step.subject, step.attempt)


def test_a_machine_of_a_failed_host_is_down_and_recovered_once_the_host_is_fenced() -> None:
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
def test_a_hook_or_a_driver_fences_and_otherwise_an_external_program(
    driver: str, policy: Policy, who: str
) -> None:
    there = fleet(policy=policy)
    assert fence(there, failed(there, driver=driver)).driver == who


def test_a_rehearsal_runs_no_fence_hook() -> None:
    there = fleet(policy=Policy(hooks=frozenset(HostTask)))
    order = failed(there)
    rehearsed = replace(order, terms=replace(order.terms, rehearsal="mine"), host_steps=())
    there.draft.put_order(rehearsed)
    there.advance(order.id)
    assert fence(there, order).driver == SIMULATED


def test_an_external_program_reports_a_fence() -> None:
    there = fleet()
    order = failed(there, driver=EXTERNAL)
    reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    assert (fence(there, order).state, recovery(there, order)) == (StepState.DONE, StepState.RUNNING)


def test_an_external_recovery_needs_the_machine_on_another_host() -> None:
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


def test_a_failed_fence_waits_for_a_person_and_can_be_retried() -> None:
    there = fleet()
    order = failed(there)
    reports.step_failed(there.draft, attempt(there, order), why="the switch does not answer")
    assert there.advance(order.id).state is OrderState.FAILED
    assert recovery(there, order) is StepState.WAITING
    assert there.waits(order.id)[0] == "fence of host host-1: failed: the switch does not answer"
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert (fence(there, order).state, fence(there, order).attempt) == (StepState.RUNNING, 2)


def test_a_fence_that_is_retried_automatically_is_a_recorded_attempt() -> None:
    there = fleet()
    order = failed(there)
    reports.step_failed(there.draft, attempt(there, order), why="no route", again=True)
    there.advance(order.id)
    assert (fence(there, order).state, fence(there, order).attempt) == (StepState.RUNNING, 2)
    assert there.history(Kind.STEP_FAILED) == ["fence of the host, simulated: no route; it is tried again"]


def test_an_answer_about_an_older_attempt_is_ignored() -> None:
    there = fleet()
    order = failed(there)
    first = attempt(there, order)
    reports.step_failed(there.draft, first, why="no route", again=True)
    there.advance(order.id)
    reports.step_done(there.draft, first)
    assert fence(there, order).state is StepState.RUNNING


def test_an_operator_confirms_that_a_failed_host_is_off() -> None:
    there = fleet()
    order = failed(there)
    there.turn()
    vouched = vouch(there)
    assert (vouched.id, vouched.terms.fenced) == (order.id, "olga: its plug is pulled")
    assert (fence(there, order).state, recovery(there, order)) == (StepState.MOOT, StepState.RUNNING)
    assert there.history(Kind.HOST_FENCED) == ["confirmed by olga: its plug is pulled"]


def test_an_operator_confirms_while_reporting_the_failure() -> None:
    there = fleet()
    order = vouch(there)
    assert (order.host_steps, recovery(there, order)) == ((), StepState.RUNNING)
    assert there.history(Kind.HOST_FENCED) == ["confirmed by olga: its plug is pulled"]


def test_a_confirmation_is_refused_if_nothing_waits_for_it() -> None:
    there = fleet()
    vouch(there)
    with pytest.raises(Conflict, match="nothing waits for it to be fenced"):
        vouch(there)
    there.maintain("host-2", Action.FAIL)
    with pytest.raises(Conflict, match="nothing waits for it to be fenced"):
        vouch(there, host=HostName("host-2"))


def test_a_host_that_is_restored_before_its_fence_is_fenced_nevertheless() -> None:
    there = fleet()
    order = failed(there)
    there.maintain(action=Action.RESTORE)
    there.advance(order.id)
    assert recovery(there, order) is StepState.WAITING


def test_a_failure_cannot_be_abandoned_while_its_machines_may_still_run() -> None:
    there = fleet()
    order = failed(there)
    with pytest.raises(Conflict, match=r"confirm that it is off .+, or restore it, first"):
        interventions.abandon(there.draft, order.id, by="olga")


def test_abandoning_a_failure_leaves_machines_of_a_fenced_host_down() -> None:
    there = Fleet(machine("web-0"))
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert recovery(there, order) is StepState.FAILED
    interventions.abandon(there.draft, order.id, by="olga")
    assert not there.draft.orders[order.id].open
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.STOPPED, None)


def test_abandoning_a_failure_leaves_machines_running_on_a_restored_unfenced_host() -> None:
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


def test_orders_that_wait_for_a_machine_are_closed_when_its_recovery_is_abandoned() -> None:
    there = Fleet(machine("web-0"))
    order = there.maintain(action=Action.FAIL, fenced="its plug is pulled")
    there.maintain(action=Action.RESTORE)
    waits = there.order("web-0")
    interventions.abandon(there.draft, order.id, by="olga")
    assert there.draft.orders[waits.id].state is OrderState.CANCELLED
    assert there.draft.orders[waits.id].why == f"down, and not recovered (order {order.id})"


def test_a_host_that_fails_again_is_fenced_before_its_machines_are_recovered() -> None:
    there = fleet()
    before = failed(there)
    there.maintain(action=Action.RESTORE)
    order = failed(there)
    assert not there.draft.orders[before.id].open
    assert (there.machine("web-0").state, there.machine("web-0").host) == (MachineState.RESTARTING, HOST)
    assert recovery(there, order) is StepState.WAITING
    vouch(there)
    assert recovery(there, order) is StepState.RUNNING


def test_a_machine_that_waits_for_recovery_can_be_terminated() -> None:
    there = fleet()
    failed(there)
    order = there.order("web-0", Action.TERMINATE)
    assert there.draft.orders[order.id].state is OrderState.ANNOUNCED


def test_a_machine_that_arrives_on_a_restored_host_is_not_part_of_the_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1", "host-2"))
    order = failed(there)
    there.maintain(action=Action.RESTORE)
    there.draft.put_machine(replace(there.machine("web-1"), host=HOST))
    order = there.advance(order.id)
    assert [step.name for step in order.steps] == ["web-0"]
    assert there.machine("web-1").state is MachineState.RUNNING


def test_a_machine_that_arrives_on_a_failed_host_is_part_of_the_failure() -> None:
    there = Fleet(machine("web-0"), machine("web-1", "host-2"))
    order = failed(there)
    there.draft.put_machine(replace(there.machine("web-1"), host=HOST))
    assert [step.name for step in there.advance(order.id).steps] == ["web-0", "web-1"]


def evicted_while_failed(*others: Machine) -> tuple[Fleet, Order, Order]:
    """Fail a host while one of its machines is being evicted."""
    there = Fleet(machine("web-0", priority=Priority.SPOT), *others, hosts=["host-2"])
    eviction = there.order("web-0", Action.EVICT)
    there.pass_(15 * MINUTE)
    assert there.running(eviction.id)
    return there, eviction, failed(there)


def test_a_failure_stays_open_until_departing_machines_have_left() -> None:
    there, eviction, order = evicted_while_failed()
    assert (order.state, order.steps) == (OrderState.STARTED, ())
    assert there.waits(order.id)[-1] == f"web-0: waits for order {eviction.id} (evict) to finish with it"
    reports.step_done(there.draft, AttemptId(eviction.id, MachineId("web-0"), 1))
    assert there.draft.orders[order.id].due_at == there.now
    assert there.advance(order.id).state is OrderState.DONE
    assert fence(there, order).state is StepState.MOOT


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("others", [(), (machine("db-0"),)])
def test_an_unanswered_eviction_is_done_once_its_host_is_fenced(
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


def test_an_eviction_is_done_if_its_host_is_confirmed_as_fenced_from_the_start() -> None:
    there = Fleet(machine("web-0", priority=Priority.SPOT))
    eviction = there.order("web-0", Action.EVICT)
    there.pass_(15 * MINUTE)
    assert vouch(there).state is OrderState.DONE
    assert there.draft.orders[eviction.id].steps[0].state is StepState.DONE


def test_a_termination_on_a_fenced_host_is_done_at_once() -> None:
    there = Fleet(machine("web-0"))
    order = failed(there, **FENCED)
    assert recovery(there, order) is StepState.FAILED  # there is no other host
    end = there.order("web-0", Action.TERMINATE)
    there.approve(there.events(end.id)[0])
    assert there.draft.orders[end.id].steps[0].state is StepState.DONE
    assert there.advance(order.id).state is OrderState.DONE
    assert recovery(there, order) is StepState.MOOT


def test_a_machine_whose_termination_is_cancelled_waits_for_the_fence_of_its_host() -> None:
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
def test_a_machine_whose_eviction_fails_on_a_failed_host_is_recovered(others: tuple[Machine, ...]) -> None:
    there, eviction, order = evicted_while_failed(*others)
    there.fail(eviction.id)
    assert there.draft.orders[order.id].due_at == there.now
    order = there.advance(order.id)
    assert {step.name: step.state for step in order.steps}["web-0"] is StepState.WAITING
    assert there.machine("web-0").state is MachineState.RESTARTING
    assert [event.resources[0].name for event in there.events(order.id)][-1] == "web-0"
    vouch(there)
    assert "web-0" in {step.name for step in there.running(order.id)}


def test_a_failure_that_waits_for_an_eviction_cannot_be_cancelled_or_abandoned() -> None:
    there, eviction, order = evicted_while_failed()
    with pytest.raises(Conflict, match="too late to cancel"):
        interventions.cancel(there.draft, order.id, by="olga")
    with pytest.raises(Conflict, match="not fenced: confirm that it is off"):
        interventions.abandon(there.draft, order.id, by="olga")
    there.maintain(action=Action.RESTORE)
    order = there.advance(order.id)
    assert (order.state, there.draft.orders[eviction.id].open) == (OrderState.DONE, True)
    assert fence(there, order).state is StepState.MOOT


def test_an_unknown_state_is_recorded_once_and_is_no_failure() -> None:
    there = fleet()
    order = failed(there)
    for _ in range(2):
        reports.step_unknown(there.draft, attempt(there, order), why="no answer")
    there.advance(order.id)
    assert fence(there, order).state is StepState.RUNNING
    assert there.history(Kind.STEP_UNKNOWN) == ["fence of the host, simulated: no answer"]
    assert "fence of host host-1: its state is unknown: no answer" in there.waits(order.id)


def test_a_host_in_the_answer_about_a_fence_is_ignored() -> None:
    there = fleet()
    order = failed(there)
    reports.step_refused(there.draft, attempt(there, order), why="full")
    reports.step_done(there.draft, attempt(there, order), host=HostName("nowhere"))
    assert fence(there, order).state is StepState.DONE


def test_outside_reports_are_refused_for_another_driver() -> None:
    there = fleet()
    order = there.maintain()
    with refused(Conflict, match="carried out by driver simulated: it takes no outside reports"):
        reports.report_done(there.draft, order.id, by="olga", policy=there.policy)
    failure = failed(there)
    with refused(Conflict, match="carried out by driver simulated: it takes no outside reports"):
        reports.report_done(there.draft, failure.id, by="olga", policy=there.policy)
