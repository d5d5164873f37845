"""Reports of drivers about steps (rule 8), and of external programs about orders."""

from datetime import timedelta

import pytest

from forewarn.core.basic_types import Action, HostName, Kind, MachineId, OrderState, StepState, Work
from forewarn.core.errors import Conflict
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import interventions, reports
from forewarn.core.time_formats import format_span
from tests.helpers.service.refused import refused
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

WEB = MachineId("web-0")


def started(fleet: Fleet, **terms: object) -> Order:
    order = fleet.maintain(**terms)  # type: ignore[arg-type]
    fleet.pass_(15 * MINUTE)
    return fleet.draft.orders[order.id]


def attempt(order: Order, number: int = 1) -> AttemptId:
    return AttemptId(order.id, WEB, number)


def state(fleet: Fleet, order: Order) -> StepState:
    return fleet.draft.orders[order.id].steps[0].state


def test_a_driver_decides_when_its_running_step_is_checked() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_running(fleet.draft, attempt(order), look_at=fleet.now + HOUR)
    assert fleet.advance(order.id).due_at == fleet.now + HOUR


def test_a_report_on_a_finished_step_changes_nothing() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_done(fleet.draft, attempt(order))
    before = fleet.draft.changes()
    reports.step_done(fleet.draft, attempt(order))
    reports.step_failed(fleet.draft, attempt(order), why="it burns")
    reports.step_running(fleet.draft, attempt(order), look_at=fleet.now)
    assert fleet.draft.changes() == before


def test_a_machine_that_arrives_leaves_the_orders_on_its_old_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    moves = fleet.order("web-0", Action.REDEPLOY)
    stays = fleet.maintain()
    fleet.approve(fleet.events(moves.id)[0])
    reports.step_done(fleet.draft, attempt(moves))
    (event,) = fleet.events(stays.id)
    assert [each.name for each in event.resources] == ["web-1"]
    assert fleet.history(Kind.EVENT_LEFT) == ["moved to host-2"]
    assert fleet.draft.orders[stays.id].due_at == fleet.now


def test_a_machine_cannot_arrive_on_a_host_whose_failure_is_over() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2", "host-3"])
    fleet.maintain("host-3", Action.FAIL)
    fleet.turn()
    order = started(fleet, work=Work.REDEPLOY)
    reports.step_done(fleet.draft, attempt(order), host=HostName("host-3"))
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, fleet.machine("web-0").host) == (StepState.FAILED, "host-1")
    assert step.why == "host host-3 was lost before it arrived: retry, and another one is chosen"


def test_a_machine_cannot_arrive_on_a_host_outside_the_fleet() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, work=Work.REDEPLOY)
    del fleet.draft.hosts[HostName("host-2")]
    reports.step_done(fleet.draft, attempt(order))
    assert fleet.draft.orders[order.id].steps[0].state is StepState.FAILED


def test_orders_that_wait_for_a_machine_are_woken_when_its_step_ends() -> None:
    for end in (reports.step_done, reports.step_failed):
        fleet = Fleet(machine("web-0"))
        order = fleet.order("web-0", Action.FREEZE)
        waits = fleet.maintain()
        fleet.approve(fleet.events(order.id)[0])
        fleet.turn(MINUTE)
        more = {"why": "it burns"} if end is reports.step_failed else {}
        end(fleet.draft, attempt(order), **more)  # type: ignore[operator]
        assert fleet.draft.orders[waits.id].due_at == fleet.now


def test_an_answer_about_another_attempt_is_ignored() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_failed(fleet.draft, attempt(order), why="it burns")
    fleet.advance(order.id)
    interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)
    reports.step_done(fleet.draft, attempt(order))
    reports.step_unknown(fleet.draft, attempt(order), why="no route")
    reports.step_refused(fleet.draft, attempt(order), why="too big")
    reports.step_cancelled(fleet.draft, attempt(order))
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, step.attempt, step.why) == (StepState.RUNNING, 2, "")


def test_the_mark_and_the_progress_of_a_step_are_saved() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    reports.step_running(fleet.draft, attempt(order), look_at=None, mark="job-7", progress=0.2)
    reports.step_running(fleet.draft, attempt(order), look_at=None, progress=0.6)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.mark, step.progress) == ("job-7", 0.6)
    reports.step_done(fleet.draft, attempt(order), impact=2.34)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.progress, step.impact) == (None, 2.34)
    assert fleet.history(Kind.STEP_DONE) == ["reboot, simulated, away for 2.3 s"]


def test_the_downtime_of_a_machine_is_recorded_beside_the_announced_duration() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet, work=Work.FREEZE)
    reports.step_done(fleet.draft, attempt(order), impact=0.31)
    (event,) = fleet.events(order.id)
    announced = format_span(event.duration_seconds)
    assert fleet.history(Kind.STEP_DONE) == [f"freeze, simulated, away for 0.3 s, announced as {announced}"]


def test_a_step_of_unknown_state_runs_on_with_its_reason() -> None:
    """Rule 8: an unreachable hypervisor is no failure."""
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    for why in ("no route", "no answer"):
        reports.step_unknown(fleet.draft, attempt(order), why=why)
    assert fleet.advance(order.id).state is OrderState.STARTED
    assert fleet.waits(order.id) == ["web-0: its state is unknown: no answer"]
    reports.step_running(fleet.draft, attempt(order), look_at=None)
    assert fleet.advance(order.id).waiting == ()
    reports.step_unknown(fleet.draft, attempt(order), why="no route")
    assert fleet.history(Kind.STEP_UNKNOWN) == ["reboot: no route"]  # once for each attempt


def test_the_host_that_a_driver_reports_is_saved() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2", "host-3"])
    order = started(fleet, work=Work.REDEPLOY)
    reports.step_done(fleet.draft, attempt(order), host=HostName("host-3"))
    assert fleet.machine("web-0").host == "host-3"
    assert fleet.history(Kind.STEP_DONE) == ["redeploy to host-3, simulated, not host-2 as chosen"]


def test_a_driver_may_report_that_a_machine_has_moved_unexpectedly() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, work=Work.FREEZE)
    reports.step_done(fleet.draft, attempt(order), host=HostName("host-2"))
    assert fleet.machine("web-0").host == "host-2"
    assert fleet.history(Kind.STEP_DONE) == ["freeze to host-2, simulated"]


def test_a_reported_host_outside_the_fleet_fails_the_step() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, work=Work.REDEPLOY)
    reports.step_done(fleet.draft, attempt(order), host=HostName("host-9"))
    (step,) = fleet.draft.orders[order.id].steps
    assert step.why == (
        "its driver says it is on host-9, which is not a host of the fleet: declare it, then retry"
    )
    assert (fleet.machine("web-0").host, fleet.machine("web-0").bound_for) == ("host-1", None)


def test_a_refused_machine_goes_to_another_host() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2", "host-3"])
    order = started(fleet, work=Work.REDEPLOY)
    reports.step_refused(fleet.draft, attempt(order), why="too little memory")
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, step.attempt, step.target) == (StepState.RUNNING, 1, "host-3")
    assert fleet.machine("web-0").bound_for == "host-3"
    assert fleet.history(Kind.STEP_BEGUN)[-1] == (
        "redeploy to host-3, simulated: host-2 cannot take it, too little memory"
    )


def test_a_machine_that_every_host_refuses_stays_and_its_step_fails_with_all_reasons() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2", "host-3"])
    order = started(fleet, work=Work.REDEPLOY)
    reports.step_refused(fleet.draft, attempt(order), why="too little memory")
    reports.step_refused(fleet.draft, attempt(order), why="another CPU")
    (step,) = fleet.draft.orders[order.id].steps
    assert step.why == (
        'no sound host can take "web-0": host-2 cannot take it, too little memory; '
        "host-3 cannot take it, another CPU; add or uncordon one, then retry"
    )
    assert (step.state, fleet.machine("web-0").bound_for) == (StepState.FAILED, None)
    fleet.advance(order.id)
    fleet.turn()
    again = interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert again.steps[0].target == "host-2"  # an operator may have freed capacity


def test_a_driver_that_uses_real_time_is_not_asked_in_service_time() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet, driver="libvirt")
    assert (order.steps[0].look_at, order.due_at) == (None, None)


# External drivers


def external(fleet: Fleet, **terms: object) -> Order:
    return started(fleet, driver="external", **terms)


def test_an_external_driver_reports_for_all_machines_of_a_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = external(fleet)
    reports.report_done(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert {step.state for step in fleet.draft.orders[order.id].steps} == {StepState.DONE}


def test_a_reported_failure_waits_for_a_person() -> None:
    fleet = Fleet(machine("web-0"))
    order = external(fleet)
    reports.report_failed(fleet.draft, order.id, by="ops", why="no power", policy=fleet.policy)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    assert fleet.waits(order.id) == ["web-0: failed: no power"]


@pytest.mark.parametrize(("terms", "silence"), [({}, 10 * MINUTE), ({"heartbeat": 2 * MINUTE}, 2 * MINUTE)])
def test_a_heartbeat_is_due_again_after_the_permitted_silence(
    terms: dict[str, timedelta], silence: timedelta
) -> None:
    fleet = Fleet(machine("web-0"))
    order = external(fleet, **terms)
    assert (
        reports.heartbeat(fleet.draft, order.id, heard_at=fleet.now, policy=fleet.policy).due_at
        == fleet.now + silence
    )


def test_silence_fails_only_work_that_was_taken_up() -> None:
    fleet = Fleet(machine("web-0"))
    order = external(fleet)
    for taken_up, expected in ((False, StepState.RUNNING), (True, StepState.FAILED)):
        if taken_up:
            reports.heartbeat(fleet.draft, order.id, heard_at=fleet.now, policy=fleet.policy)
        reports.fail_silent_steps(fleet.draft, order.id, by="forewarn", why="silent", policy=fleet.policy)
        assert state(fleet, order) is expected


def test_reports_on_work_of_another_driver_are_refused() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    with refused(Conflict, match="is carried out by driver simulated"):
        reports.report_done(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert state(fleet, order) is StepState.RUNNING


def test_reports_on_work_that_is_not_under_way_are_refused() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(driver="external")
    with pytest.raises(Conflict, match="is announced: none of its work is under way"):
        reports.report_failed(fleet.draft, order.id, by="ops", why="", policy=fleet.policy)
    interventions.cancel(fleet.draft, order.id, by="ops")
    with pytest.raises(Conflict, match="is cancelled: none of its work is under way"):
        reports.heartbeat(fleet.draft, order.id, heard_at=fleet.now, policy=fleet.policy)
