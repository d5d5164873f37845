"""What drivers report of steps (rule 8), and external drivers of whole orders."""

from datetime import timedelta

import pytest

from forewarn.core.errors import Conflict
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions, reports
from forewarn.core.words import Action, Kind, MachineId, OrderState, StepState, Work
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

WEB = MachineId("web-0")


def started(fleet: Fleet, **terms: object) -> Order:
    order = fleet.maintain(**terms)  # type: ignore[arg-type]
    fleet.pass_(15 * MINUTE)
    return fleet.draft.orders[order.id]


def state(fleet: Fleet, order: Order) -> StepState:
    return fleet.draft.orders[order.id].steps[0].state


def test_a_running_step_is_asked_after_when_its_driver_says() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_running(fleet.draft, order.id, WEB, look_at=fleet.now + HOUR)
    assert fleet.advance(order.id).due_at == fleet.now + HOUR


def test_a_report_on_a_step_that_is_done_or_moot_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_done(fleet.draft, order.id, WEB)
    before = fleet.draft.changes()
    reports.step_done(fleet.draft, order.id, WEB)
    reports.step_failed(fleet.draft, order.id, WEB, why="it burns")
    reports.step_running(fleet.draft, order.id, WEB, look_at=fleet.now)
    assert fleet.draft.changes() == before


def test_a_machine_that_arrives_leaves_what_is_scheduled_on_the_host_it_left() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    moves = fleet.order("web-0", Action.REDEPLOY)
    stays = fleet.maintain()
    fleet.approve(fleet.events(moves.id)[0])
    reports.step_done(fleet.draft, moves.id, WEB)
    (event,) = fleet.events(stays.id)
    assert [each.name for each in event.resources] == ["web-1"]
    assert fleet.history(Kind.EVENT_LEFT) == ["moved to host-2"]
    assert fleet.draft.orders[stays.id].due_at == fleet.now


def test_a_machine_does_not_arrive_on_a_host_that_failed_meanwhile() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, work=Work.REDEPLOY)
    fleet.maintain("host-2", Action.FAIL)
    reports.step_done(fleet.draft, order.id, WEB)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, fleet.machine("web-0").host) == (StepState.FAILED, "host-1")
    assert step.why == "host host-2 was lost before it arrived: retry, and another one is chosen"


def test_those_who_wait_for_a_machine_are_looked_at_when_its_step_ends() -> None:
    for end in (reports.step_done, reports.step_failed):
        fleet = Fleet(machine("web-0"))
        order = fleet.order("web-0", Action.FREEZE)
        waits = fleet.maintain()
        fleet.approve(fleet.events(order.id)[0])
        fleet.turn(MINUTE)
        more = {"why": "it burns"} if end is reports.step_failed else {}
        end(fleet.draft, order.id, WEB, **more)  # type: ignore[operator]
        assert fleet.draft.orders[waits.id].due_at == fleet.now


# External drivers


def external(fleet: Fleet, **terms: object) -> Order:
    return started(fleet, driver="external", **terms)


def test_an_external_driver_reports_for_all_machines_of_a_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = external(fleet)
    reports.report_done(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert {step.state for step in fleet.draft.orders[order.id].steps} == {StepState.DONE}


def test_a_failure_it_reports_waits_for_a_person() -> None:
    fleet = Fleet(machine("web-0"))
    order = external(fleet)
    reports.report_failed(fleet.draft, order.id, by="ops", why="no power", policy=fleet.policy)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    assert fleet.waits(order.id) == ["web-0: failed: no power"]


@pytest.mark.parametrize(("terms", "silence"), [({}, 10 * MINUTE), ({"heartbeat": 2 * MINUTE}, 2 * MINUTE)])
def test_a_heartbeat_is_due_again_after_the_silence_that_is_allowed(
    terms: dict[str, timedelta], silence: timedelta
) -> None:
    fleet = Fleet(machine("web-0"))
    order = external(fleet, **terms)
    assert reports.heartbeat(fleet.draft, order.id, policy=fleet.policy).due_at == fleet.now + silence


def test_nobody_reports_on_what_another_driver_does() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    with pytest.raises(Conflict, match="is carried out by driver simulated"):
        reports.report_done(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert state(fleet, order) is StepState.RUNNING


def test_nobody_reports_on_what_is_not_under_way() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(driver="external")
    with pytest.raises(Conflict, match="is announced: none of its work is under way"):
        reports.report_failed(fleet.draft, order.id, by="ops", why="", policy=fleet.policy)
    interventions.cancel(fleet.draft, order.id, by="ops")
    with pytest.raises(Conflict, match="is cancelled: none of its work is under way"):
        reports.heartbeat(fleet.draft, order.id, policy=fleet.policy)
