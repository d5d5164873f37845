"""Holds that stop work under way."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    EXTERNAL,
    Action,
    HostName,
    OrderState,
    ProjectName,
    StepState,
    Work,
)
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import interventions, reports
from forewarn.wire.answers.service_answers import StillRunningAnswer
from tests.unit.slices import MINUTE, NOON, Fleet, machine

EVERYWHERE = Hold(id="H", reason="wrong image", by="ops", at=NOON, abort=True)


def fleet() -> Fleet:
    return Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])


def begun(made: Fleet, **terms: object) -> Order:
    """Start an order on the host."""
    order = made.maintain(work=Work.REBOOT, **terms)
    made.pass_(15 * MINUTE)
    assert made.running(order.id)
    return order


def test_a_hold_abandons_running_work_with_its_name_and_reason() -> None:
    made = fleet()
    order = begun(made)
    assert interventions.stop(made.draft, order.id, EVERYWHERE)
    stopped = made.draft.orders[order.id]
    assert (stopped.terms.stopped_by, stopped.terms.abandoned_by) == ("H", "ops")
    assert made.waits(order.id)[0].startswith(
        f"order {order.id}: being stopped by ops: wrong image: ends once"
    )
    for step in made.running(order.id):
        reports.step_cancelled(made.draft, AttemptId(order.id, step.machine, step.attempt))
    over = made.advance(order.id)
    assert (over.state, over.why, over.open) == (OrderState.FAILED, "stopped by ops: wrong image", False)
    assert {step.why for step in over.steps} == {"stopped by ops: wrong image, and cancelled"}
    assert made.events() == ()


def test_a_step_that_cannot_be_cancelled_is_named_and_runs_to_its_end() -> None:
    made = fleet()
    order = begun(made)
    interventions.stop(made.draft, order.id, EVERYWHERE)
    first, *_ = made.running(order.id)
    attempt = AttemptId(order.id, first.machine, first.attempt)
    reports.step_too_late(made.draft, attempt)
    reports.step_too_late(made.draft, attempt)
    made.advance(order.id)
    assert f"{first.name}: can no longer be cancelled: it continues" in made.waits(order.id)
    made.finish(order.id)
    assert {step.state for step in made.draft.orders[order.id].steps} == {StepState.DONE}
    assert made.draft.orders[order.id].why == "stopped by ops: wrong image"


def test_external_programs_are_asked_to_stop() -> None:
    made = fleet()
    order = begun(made, driver=EXTERNAL)
    reports.heartbeat(made.draft, order.id, heard_at=made.now, policy=made.policy)
    interventions.stop(made.draft, order.id, EVERYWHERE)
    first, *_ = made.running(order.id)
    reports.step_too_late(made.draft, AttemptId(order.id, first.machine, first.attempt))
    stopped = made.advance(order.id)
    asked = f"{first.name}: is done outside, and is asked to stop with its next heartbeat"
    assert asked in made.waits(order.id)
    assert {each.too_late for each in StillRunningAnswer.of(stopped)} == {False}


def test_an_answer_about_an_ended_step_changes_nothing() -> None:
    made = fleet()
    order = begun(made)
    made.finish(order.id)
    before = made.draft.orders[order.id]
    reports.step_too_late(made.draft, AttemptId(order.id, before.steps[0].machine, 1))
    assert made.draft.orders[order.id] == before


def test_an_order_that_has_not_started_only_waits_for_the_hold() -> None:
    made = fleet()
    order = made.maintain(work=Work.REBOOT)
    assert not interventions.stop(made.draft, order.id, EVERYWHERE)
    assert made.draft.orders[order.id].state is OrderState.ANNOUNCED


def test_an_order_with_only_listed_events_is_not_stopped() -> None:
    made = fleet()
    order = begun(made)
    made.finish(order.id)
    assert made.events(order.id)
    assert not interventions.stop(made.draft, order.id, EVERYWHERE)


def test_recoveries_are_not_stopped() -> None:
    made = fleet()
    order = made.maintain(action=Action.FAIL)
    assert not interventions.stop(made.draft, order.id, EVERYWHERE)


def test_an_order_that_is_being_abandoned_is_not_stopped_again() -> None:
    made = fleet()
    order = begun(made)
    assert interventions.stop(made.draft, order.id, EVERYWHERE)
    assert not interventions.stop(made.draft, order.id, replace(EVERYWHERE, id="H2"))


@pytest.mark.parametrize(
    ("hold", "reached"),
    [
        (replace(EVERYWHERE, host=HostName("host-1")), True),
        (replace(EVERYWHERE, host=HostName("host-2")), False),
        (replace(EVERYWHERE, project=DEFAULT_PROJECT), True),
        (replace(EVERYWHERE, project=ProjectName("other")), False),
    ],
)
def test_only_orders_in_the_scope_of_a_hold_are_stopped(hold: Hold, reached: bool) -> None:
    made = fleet()
    order = begun(made)
    assert interventions.stop(made.draft, order.id, hold) is reached
