"""Cancelling, retrying and abandoning an order that was placed."""

import pytest

from forewarn.core.basic_types import Action, Kind, MachineId, MachineState, OrderState, StepState, Work
from forewarn.core.errors import Conflict
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import interventions, reports
from tests.unit.slices import HOUR, MINUTE, Fleet, machine


def failed(fleet: Fleet) -> Order:
    """Fail the steps of maintenance on host-1."""
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    fleet.fail(order.id)
    return fleet.draft.orders[order.id]


def retry(fleet: Fleet, order: Order) -> Order:
    return interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)


def abandon(fleet: Fleet, order: Order) -> Order:
    return interventions.abandon(fleet.draft, order.id, by="ops")


# Cancelling


def test_cancelling_an_order_cancels_all_its_events() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    order = interventions.cancel(fleet.draft, fleet.maintain().id, by="ops")
    assert (order.state, order.ended_at, order.due_at) == (OrderState.CANCELLED, fleet.now, None)
    assert {step.state for step in order.steps} == {StepState.MOOT}
    assert fleet.events() == ()
    assert fleet.history(Kind.EVENT_CANCELLED) == ["cancelled"] * 2


def test_an_order_with_a_started_stage_cannot_be_cancelled() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    fleet.approve(fleet.events()[0])
    with pytest.raises(Conflict, match="is started, too late to cancel"):
        interventions.cancel(fleet.draft, order.id, by="ops")


def test_an_order_can_be_cancelled_between_two_stages() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    fleet.pass_(2 * MINUTE)
    cancelled = interventions.cancel(fleet.draft, order.id, by="ops")
    assert [step.state for step in cancelled.steps] == [StepState.DONE, StepState.MOOT]


def test_a_closed_order_cannot_be_cancelled() -> None:
    fleet = Fleet(machine("web-0"))
    order = interventions.cancel(fleet.draft, fleet.maintain().id, by="ops")
    with pytest.raises(Conflict, match="is cancelled, there is nothing to cancel"):
        interventions.cancel(fleet.draft, order.id, by="ops")


def test_a_machine_whose_eviction_is_cancelled_gets_notice_of_work_on_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    leaving = fleet.order("web-0", Action.TERMINATE)
    order = fleet.maintain()
    fleet.turn(MINUTE)
    interventions.cancel(fleet.draft, leaving.id, by="ops")
    assert fleet.draft.orders[order.id].due_at == fleet.now
    fleet.advance(order.id)
    assert [each.name for event in fleet.events() for each in event.resources] == ["web-1", "web-0"]


# Retrying


def test_a_retry_runs_failed_steps_with_the_next_attempt_number() -> None:
    fleet = Fleet(machine("web-0"))
    order = retry(fleet, failed(fleet))
    (step,) = order.steps
    assert (order.state, step.state, step.attempt, step.ended_at) == (
        OrderState.STARTED,
        StepState.RUNNING,
        2,
        None,
    )


def test_a_finished_step_is_never_run_again() -> None:
    """Rule 8."""
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    reports.step_done(fleet.draft, attempt(order, "web-0"))
    fleet.fail(order.id)
    again = retry(fleet, order)
    assert [(step.state, step.attempt) for step in again.steps] == [
        (StepState.DONE, 1),
        (StepState.RUNNING, 2),
    ]


def test_a_retried_move_chooses_a_host_again() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = fleet.maintain(work=Work.REDEPLOY)
    fleet.pass_(10 * MINUTE)
    fleet.maintain("host-2", Action.CORDON)
    fleet.fail(order.id)
    fleet.turn()
    assert retry(fleet, order).steps[0].state is StepState.FAILED
    fleet.maintain("host-2", Action.UNCORDON)
    fleet.turn()
    assert retry(fleet, order).steps[0].target == "host-2"


# Abandoning


def test_an_abandoned_order_is_closed_as_failed() -> None:
    fleet = Fleet(machine("web-0"))
    order = abandon(fleet, failed(fleet))
    assert (order.state, order.open) == (OrderState.FAILED, False)
    assert order.why == "abandoned by ops: failed: it burns"
    assert (fleet.events(), fleet.machine("web-0").state) == ((), MachineState.RUNNING)
    assert fleet.history(Kind.ORDER_ABANDONED) == [order.why]


def half_failed(fleet: Fleet, **terms: object) -> Order:
    """Fail web-0 while maintenance of web-1 on host-1 still runs."""
    order = fleet.maintain(**terms)  # type: ignore[arg-type]
    fleet.pass_(15 * MINUTE)
    reports.step_failed(fleet.draft, attempt(order, "web-0"), why="it burns")
    return fleet.advance(order.id)


def attempt(order: Order, name: str) -> AttemptId:
    return AttemptId(order.id, MachineId(name), 1)


def test_an_order_is_being_abandoned_while_a_step_runs() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = half_failed(fleet)
    reports.step_running(fleet.draft, attempt(order, "web-1"), look_at=fleet.now + HOUR)
    order = abandon(fleet, order)
    assert (order.open, order.state, order.terms.abandoned_by) == (True, OrderState.FAILED, "ops")
    assert order.due_at == fleet.now  # its driver is asked at once
    assert fleet.waits(order.id) == [
        f"order {order.id}: being abandoned by ops: ends once the work on web-1 is cancelled or over"
    ]
    assert fleet.history(Kind.ORDER_ABANDONING) == ["its driver is asked to cancel running steps: web-1"]
    assert len(fleet.events()) == 1


def test_a_cancelled_step_is_moot_and_closes_its_order() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = abandon(fleet, half_failed(fleet))
    reports.step_cancelled(fleet.draft, attempt(order, "web-1"))
    order = fleet.advance(order.id)
    assert (order.open, order.why) == (False, "abandoned by ops: failed: it burns")
    assert [step.why for step in order.steps] == [order.why, "abandoned by ops, and cancelled"]
    assert (fleet.events(), fleet.machine("web-1").state) == ((), MachineState.RUNNING)


def test_a_machine_whose_termination_is_called_off_gets_notice_of_work_on_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    leaving = fleet.order("web-0", Action.TERMINATE)
    fleet.pass_(10 * MINUTE)
    order = fleet.maintain()
    fleet.turn(MINUTE)
    leaving = abandon(fleet, leaving)
    reports.step_cancelled(fleet.draft, attempt(leaving, "web-0"))
    fleet.advance(leaving.id)
    assert fleet.draft.orders[order.id].due_at == fleet.now
    fleet.advance(order.id)
    assert [each.name for event in fleet.events() for each in event.resources] == ["web-1", "web-0"]


def test_a_machine_whose_termination_could_not_be_cancelled_leaves_the_fleet() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    leaving = fleet.order("web-0", Action.TERMINATE)
    fleet.pass_(10 * MINUTE)
    leaving = abandon(fleet, fleet.draft.orders[leaving.id])
    fleet.finish(leaving.id)
    leaving = fleet.draft.orders[leaving.id]
    assert (leaving.state, leaving.why) == (OrderState.FAILED, "abandoned by ops")
    assert [each.name for each in fleet.draft.machines.values()] == ["web-1"]
    assert fleet.history(Kind.MACHINE_REMOVED) == ["terminated"]


def test_a_terminated_machine_leaves_the_fleet_although_its_host_fails() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    leaving = fleet.order("web-0", Action.TERMINATE)
    fleet.pass_(10 * MINUTE)
    fleet.finish(leaving.id)
    fleet.maintain(action=Action.FAIL)
    fleet.pass_(10 * MINUTE)
    assert [each.name for each in fleet.draft.machines.values()] == ["web-1"]


def test_a_step_that_cannot_be_cancelled_goes_on_and_the_next_stage_is_not_announced() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    fleet.pass_(15 * MINUTE)
    order = abandon(fleet, fleet.draft.orders[order.id])
    assert order.state is OrderState.STARTED
    fleet.pass_(HOUR)
    assert [step.state for step in fleet.draft.orders[order.id].steps] == [
        StepState.RUNNING,
        StepState.WAITING,
    ]
    fleet.finish(order.id)
    order = fleet.draft.orders[order.id]
    assert [step.state for step in order.steps] == [StepState.DONE, StepState.MOOT]
    assert (order.state, order.why) == (OrderState.FAILED, "abandoned by ops")


def test_an_order_whose_driver_uses_real_time_is_not_due() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    assert abandon(fleet, half_failed(fleet, driver="libvirt")).due_at is None


def test_an_order_that_is_being_abandoned_cannot_be_abandoned_or_retried() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = abandon(fleet, half_failed(fleet))
    for what in (abandon, retry):
        with pytest.raises(Conflict, match="is being abandoned by ops already"):
            what(fleet, order)


def test_an_order_without_running_steps_is_cancelled_or_ends_by_itself() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    with pytest.raises(Conflict, match="is announced, and nothing of it runs: cancel it, or let it end"):
        abandon(fleet, order)
    fleet.pass_(15 * MINUTE)
    fleet.finish(order.id)
    with pytest.raises(Conflict, match="is started, and nothing of it runs"):
        abandon(fleet, order)


def test_only_a_failed_order_can_be_retried() -> None:
    fleet = Fleet(machine("web-0"))
    with pytest.raises(Conflict, match="is announced: only a failed order can be retried"):
        retry(fleet, fleet.maintain())


def test_a_closed_order_cannot_be_retried_or_abandoned() -> None:
    fleet = Fleet(machine("web-0"))
    order = abandon(fleet, failed(fleet))
    with pytest.raises(Conflict, match="is failed, and over: only a failed order"):
        retry(fleet, order)
    with pytest.raises(Conflict, match="is failed, and over: there is nothing to abandon"):
        abandon(fleet, order)


def test_a_closed_order_is_not_advanced() -> None:
    fleet = Fleet(machine("web-0"))
    order = abandon(fleet, failed(fleet))
    fleet.pass_(HOUR)
    assert (order.due_at, order.waiting) == (None, ())
