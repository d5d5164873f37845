"""Orders of an aborted rollout: what has started ends, nothing else begins, nothing is announced."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    EventId,
    EventStatus,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineState,
    Mobility,
    OrderState,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import host_steps, interventions, lifecycle, move_prechecks, reports, winding_down
from forewarn.core.policy import Policy
from forewarn.core.redaction import unmarked
from tests.rules import violations
from tests.unit.rules.test_checks import broken, change
from tests.unit.slices import MINUTE, NOON, Fleet, machine

HOST = HostName("host-1")
OTHERS = ("host-1", "host-2", "host-3")
WHY = "rollout R is aborted: by ops: smoke"
HOOKS = Policy(hooks=frozenset(HostTask))


def live(name: str, **more: object) -> Machine:
    return machine(name, mobility=Mobility.LIVE, **more)  # type: ignore[arg-type]


def staying(name: str, **more: object) -> Machine:
    return machine(name, mobility=Mobility.NONE, **more)  # type: ignore[arg-type]


def serviced(*machines: Machine, policy: Policy | None = None, **terms: object) -> tuple[Fleet, Order]:
    """Announce work on a host, as a rollout does."""
    fleet = Fleet(*machines, hosts=OTHERS, policy=policy)
    order = fleet.service(rollout="R", **terms)  # type: ignore[arg-type]
    if policy is not None:
        fleet.finish_host(order.id, HostTask.CORDON)
    return fleet, order


def aborted(fleet: Fleet, order: Order) -> Order:
    winding_down.begin(fleet.draft, order.id, by="ops", why=WHY)
    return fleet.advance(order.id)


def steps(fleet: Fleet, order: Order) -> dict[str, StepState]:
    return {step.name: step.state for step in fleet.draft.orders[order.id].steps}


def on_host(fleet: Fleet, order: Order) -> dict[HostTask, StepState]:
    return {step.task: step.state for step in fleet.draft.orders[order.id].host_steps}


def host_state(fleet: Fleet) -> HostState:
    return fleet.draft.hosts[HOST].state


def outcome(fleet: Fleet, order: Order) -> tuple[OrderState, str]:
    over = fleet.draft.orders[order.id]
    assert not over.open
    return over.state, unmarked(over.why)


def fails(fleet: Fleet, order: Order, task: HostTask, why: str) -> None:
    step = host_steps.find(fleet.draft.orders[order.id], task)
    assert step is not None
    reports.step_failed(fleet.draft, AttemptId(order.id, step.subject, step.attempt), why=why)
    fleet.advance(order.id)


# Machines that leave


def leaving() -> tuple[Fleet, Order]:
    """Three machines of one event leave two at a time; another group is announced."""
    fleet, order = serviced(*(machine(f"web-{number}") for number in range(3)), machine("zoo-0"))
    web, _ = fleet.events()
    fleet.approve(web)
    return fleet, order


def test_moves_that_run_end_and_all_others_are_called_off() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    moot, runs = StepState.MOOT, StepState.RUNNING
    assert steps(fleet, order) == {"web-0": runs, "web-1": runs, "web-2": moot, "zoo-0": moot}
    (event,) = fleet.events()
    assert [each.name for each in event.resources] == ["web-0", "web-1"]
    assert event.status is EventStatus.STARTED
    assert fleet.waits(order.id) == [f"order {order.id}: ends once what has started is over: {WHY}"]
    assert host_state(fleet) is HostState.CORDONED


def test_once_they_have_moved_they_stay_there_and_the_host_is_given_back() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    there = "web-0 on host-2, web-1 on host-3"
    assert outcome(fleet, order) == (
        OrderState.CANCELLED,
        f"{WHY}; machines that have moved stay there: {there}",
    )
    assert on_host(fleet, order) == {HostTask.WORK: StepState.MOOT}
    assert (host_state(fleet), fleet.machine("web-0").host) == (HostState.OK, "host-2")
    assert len(fleet.history(Kind.EVENT_SCHEDULED)) == 2
    assert fleet.history(Kind.ORDER_CANCELLED)[-1].startswith(WHY)


def test_of_many_machines_that_have_moved_the_first_are_named() -> None:
    fleet, order = serviced(*(machine(f"web-{number:02}") for number in range(12)))
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], at_once=12))
    fleet.approve(fleet.events()[0], by="web-00")
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    assert unmarked(fleet.advance(order.id).why).endswith("web-09 on host-3 and 2 more")


def test_a_move_that_fails_waits_for_a_person_and_is_not_tried_again_by_itself() -> None:
    fleet, order = serviced(live("a-0"))
    fleet.approve(fleet.events()[0], by="a-0")
    aborted(fleet, order)
    fleet.fail(order.id)
    assert steps(fleet, order) == {"a-0": StepState.FAILED}
    assert fleet.waits(order.id)[0] == "a-0: failed: it burns"
    interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)
    assert steps(fleet, order) == {"a-0": StepState.RUNNING}
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED


def test_a_move_that_waits_to_be_tried_again_is_called_off_and_its_machine_runs() -> None:
    fleet, order = serviced(*(machine(f"a-{number}") for number in range(3)))
    fleet.approve(fleet.events()[0], by="a-0")
    first, _ = fleet.running(order.id)
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], at_once=1))
    attempt = AttemptId(order.id, first.machine, first.attempt)
    reports.step_failed(fleet.draft, attempt, why="it burns")
    fleet.advance(order.id)
    assert steps(fleet, order)["a-0"] is StepState.WAITING
    assert fleet.machine("a-0").state is MachineState.MOVING
    aborted(fleet, order)
    assert steps(fleet, order)["a-0"] is StepState.MOOT
    assert fleet.machine("a-0").state is MachineState.RUNNING


def test_external_moves_are_called_off_unless_a_report_has_taken_them_up() -> None:
    fleet, order = serviced(machine("a-0"), driver="external")
    fleet.approve(fleet.events()[0], by="a-0")
    assert steps(fleet, order) == {"a-0": StepState.RUNNING}
    over = aborted(fleet, order)
    assert (over.state, [step.state for step in over.steps]) == (OrderState.CANCELLED, [StepState.MOOT])
    assert (fleet.events(), fleet.machine("a-0").state) == ((), MachineState.RUNNING)


def test_external_moves_that_were_taken_up_go_on_after_an_abort() -> None:
    fleet, order = serviced(machine("a-0"), driver="external")
    fleet.approve(fleet.events()[0], by="a-0")
    reports.heartbeat(fleet.draft, order.id, heard_at=NOON, policy=fleet.policy)
    aborted(fleet, order)
    assert steps(fleet, order) == {"a-0": StepState.RUNNING}


@pytest.mark.parametrize("taken_up", [False, True])
def test_external_work_on_a_host_is_called_off_unless_a_report_has_taken_it_up(taken_up: bool) -> None:
    fleet, order = serviced(staying("a-0"), host_driver="external")
    fleet.approve(fleet.events()[0], by="a-0")
    assert work_of(fleet.draft.orders[order.id]) is StepState.RUNNING
    if taken_up:
        reports.heartbeat(fleet.draft, order.id, heard_at=NOON, policy=fleet.policy)
    after = aborted(fleet, order)
    assert work_of(after) is (StepState.RUNNING if taken_up else StepState.MOOT)
    assert after.state is (OrderState.STARTED if taken_up else OrderState.CANCELLED)
    assert host_state(fleet) is (HostState.CORDONED if taken_up else HostState.OK)


def work_of(order: Order) -> StepState:
    (work,) = (step for step in order.host_steps if step.task is HostTask.WORK)
    return work.state


def test_what_had_failed_before_still_waits_for_a_person() -> None:
    fleet, order = serviced(machine("a-0"), machine("b-0"), driver="external")
    fleet.approve(fleet.events()[0], by="a-0")
    fleet.fail(order.id)
    assert aborted(fleet, order).state is OrderState.FAILED
    assert fleet.events()[0].resources[0].name == "a-0"
    over = interventions.abandon(fleet.draft, order.id, by="ops")
    assert (over.state, host_state(fleet)) == (OrderState.FAILED, HostState.OK)


PRECHECKED = Policy(prechecking=frozenset({"libvirt"}))


def answered(fleet: Fleet, order: Order, **refused: str) -> None:
    """Have the driver agree to the moves that it is asked about, but for those of some machines."""
    for step in fleet.draft.orders[order.id].steps:
        asked = step.precheck
        if asked is not None and asked.answered_at is None:
            attempt = AttemptId(order.id, step.machine, step.attempt)
            why = refused.get(step.group, "")
            move_prechecks.answered(fleet.draft, attempt, step.work, asked.target, refused=why)
    fleet.advance(order.id)
    fleet.turn()


def refused_and_aborted(fleet: Fleet, order: Order) -> None:
    """Have the driver refuse a redeploy, too; abort while another machine still moves."""
    answered(fleet, order, b="no disk")
    answered(fleet, order, b="no disk")
    assert steps(fleet, order)["b-0"] is StepState.FAILED
    aborted(fleet, order)


def nothing_is_left_to_retry(fleet: Fleet, order: Order) -> None:
    assert steps(fleet, order)["b-0"] is StepState.MOOT
    with pytest.raises(Conflict):
        interventions.retry(fleet.draft, order.id, by="ops", policy=PRECHECKED)


def test_a_move_that_its_driver_refused_beforehand_is_called_off() -> None:
    fleet, order = serviced(live("a-0"), live("b-0"), driver="libvirt", policy=PRECHECKED)
    for _ in range(2):  # as many hosts as there are others
        answered(fleet, order, b="no disk")
    fleet.approve(fleet.events()[0], by="a-0")
    refused_and_aborted(fleet, order)
    nothing_is_left_to_retry(fleet, order)
    assert steps(fleet, order)["a-0"] is StepState.RUNNING
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED


def test_a_move_that_failed_and_cannot_go_in_another_way_is_called_off() -> None:
    fleet, order = serviced(live("b-0"), driver="libvirt", policy=PRECHECKED)
    answered(fleet, order)
    fleet.approve(fleet.events()[0], by="b-0")
    for _ in range(PRECHECKED.move_retries + 1):
        fleet.fail(order.id)
        answered(fleet, order)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.work, step.begun_at is None) == (Work.REDEPLOY, False)
    fleet.pass_(2 * MINUTE)  # the event of the live move leaves
    refused_and_aborted(fleet, order)
    nothing_is_left_to_retry(fleet, order)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED


def test_what_a_pause_has_withdrawn_is_not_announced_again() -> None:
    fleet, order = leaving()
    lifecycle.pause(fleet.draft, order.id, why="lunch")
    fleet.advance(order.id)
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.pass_(60 * MINUTE)
    assert fleet.events() == ()
    assert len(fleet.history(Kind.EVENT_SCHEDULED)) == 2


def test_a_machine_that_comes_later_is_not_told_of_anything() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    fleet.draft.put_machine(machine("late-0"))
    fleet.draft.put_group(replace(fleet.draft.groups["web"], name="late"))  # type: ignore[index,arg-type]
    fleet.advance(order.id)
    assert len(fleet.events()) == 1


# The host itself


def test_a_host_that_is_empty_but_not_worked_on_is_given_back() -> None:
    fleet, order = serviced(machine("web-0"), staying("web-1", domain=1))
    fleet.approve(fleet.events()[0])
    fleet.finish(order.id)
    aborted(fleet, order)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED
    assert (steps(fleet, order)["web-1"], host_state(fleet)) == (StepState.MOOT, HostState.OK)


def test_work_that_is_announced_is_called_off() -> None:
    fleet, order = serviced(machine("a-0"), staying("b-0"))
    fleet.approve(fleet.events()[0], by="a-0")
    fleet.finish(order.id)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED, EventStatus.SCHEDULED]
    aborted(fleet, order)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED]
    assert fleet.history(Kind.EVENT_CANCELLED) == [WHY]


def test_the_hook_lets_the_host_go_once_nothing_moves_any_more() -> None:
    fleet, order = serviced(machine("a-0"), machine("b-0"), policy=HOOKS)
    fleet.approve(fleet.events()[0], by="a-0")
    aborted(fleet, order)
    assert fleet.draft.orders[order.id].running_host_steps == ()
    fleet.finish(order.id)
    (step,) = fleet.draft.orders[order.id].running_host_steps
    assert (step.task, host_state(fleet)) == (HostTask.UNCORDON, HostState.CORDONED)
    fleet.turn(2 * MINUTE)
    assert fleet.advance(order.id).open
    fleet.finish_host(order.id, HostTask.UNCORDON)
    assert (outcome(fleet, order)[0], host_state(fleet)) == (OrderState.CANCELLED, HostState.OK)
    done, moot = StepState.DONE, StepState.MOOT
    assert list(on_host(fleet, order).values()) == [done, moot, moot, moot, moot, done]


def test_work_that_has_begun_ends_and_the_host_is_given_back_once_it_is_well() -> None:
    fleet, order = serviced(machine("a-0"), policy=HOOKS, returning=True)
    fleet.approve(fleet.events()[0], by="a-0")
    fleet.finish(order.id)
    fleet.finish_host(order.id, HostTask.BEFORE)
    aborted(fleet, order)
    for task in (HostTask.WORK, HostTask.AFTER, HostTask.HEALTH, HostTask.UNCORDON):
        assert [each.task for each in fleet.draft.orders[order.id].running_host_steps] == [task]
        fleet.finish_host(order.id, task)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    state, why = outcome(fleet, order)
    assert (state, fleet.events()) == (OrderState.DONE, ())
    assert why.endswith("machines that have moved stay there: a-0 on host-2")


def made_ready() -> tuple[Fleet, Order]:
    """A host whose `before` hook runs, with a machine that is to restart with it."""
    fleet, order = serviced(staying("a-0"), policy=HOOKS)
    fleet.approve(fleet.events()[0], by="a-0")
    assert fleet.machine("a-0").state is MachineState.RESTARTING
    return fleet, order


def test_work_never_begins_after_the_hook_before_it_and_the_hook_after_it_follows() -> None:
    fleet, order = made_ready()
    aborted(fleet, order)
    assert (fleet.machine("a-0").state, fleet.events()) == (MachineState.RUNNING, ())
    for task in (HostTask.BEFORE, HostTask.AFTER, HostTask.UNCORDON):
        assert [each.task for each in fleet.draft.orders[order.id].running_host_steps] == [task]
        fleet.finish_host(order.id, task)
    assert (outcome(fleet, order), host_state(fleet)) == ((OrderState.CANCELLED, WHY), HostState.OK)
    assert on_host(fleet, order)[HostTask.WORK] is StepState.MOOT


@pytest.mark.parametrize("retried", [True, False])
def test_a_hook_that_had_failed_before_the_work_waits_for_a_person(retried: bool) -> None:
    fleet, order = made_ready()
    fails(fleet, order, HostTask.BEFORE, "no route")
    assert aborted(fleet, order).state is OrderState.FAILED
    if retried:
        interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)
        for task in (HostTask.BEFORE, HostTask.AFTER, HostTask.UNCORDON):
            fleet.finish_host(order.id, task)
        assert outcome(fleet, order)[0] is OrderState.CANCELLED
    else:
        interventions.abandon(fleet.draft, order.id, by="ops")
        assert "stays cordoned, for the work on it was begun and is not finished" in outcome(fleet, order)[1]


def test_machines_do_not_come_back_to_a_host_that_is_done() -> None:
    fleet, order = serviced(machine("a-0"), machine("b-0"), returning=True)
    for event in fleet.events():
        fleet.approve(event, by=event.resources[0].name)
    fleet.finish(order.id)
    fleet.finish_host(order.id)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED] * 2 + [
        EventStatus.SCHEDULED
    ] * 2
    back, _ = fleet.events()[2:]
    fleet.approve(back, by=back.resources[0].name)
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    state, why = outcome(fleet, order)
    assert state is OrderState.DONE
    assert why == f"{WHY}; machines that have moved stay there: b-0 on host-3"


# Machines that are treated where they are


def two_stages() -> tuple[Fleet, Order]:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=OTHERS)
    order = fleet.maintain(rollout="R")
    fleet.approve(fleet.events()[0])
    return fleet, order


def test_the_stage_that_has_started_ends_and_the_next_is_never_announced() -> None:
    fleet, order = two_stages()
    aborted(fleet, order)
    assert steps(fleet, order) == {"web-0": StepState.RUNNING, "web-1": StepState.MOOT}
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order) == (OrderState.CANCELLED, WHY)
    assert len(fleet.history(Kind.EVENT_SCHEDULED)) == 1


def test_an_order_of_which_everything_had_started_is_done() -> None:
    fleet = Fleet(machine("web-0"), hosts=OTHERS, policy=Policy(hooks=frozenset({HostTask.HEALTH})))
    order = fleet.maintain(rollout="R")
    fleet.approve(fleet.events()[0])
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order) == (OrderState.DONE, WHY)


def test_a_check_finds_what_begins_all_the_same() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    fleet.turn()
    before = fleet.draft.base
    assert broken(before, before, fleet) == set()
    (event,) = before.events.values()
    known = before.orders[order.id]
    steps_ = tuple(replace(step, begun_at=NOON) for step in known.stages[0].steps)
    host_work = tuple(replace(step, begun_at=NOON) for step in known.host_steps)
    more = replace(known, stages=(replace(known.stages[0], steps=steps_),), host_steps=host_work)
    other = replace(event, id=EventId("FF"))
    after = replace(before, orders={known.id: more}, events={**before.events, other.id: other})
    found = [each for each in violations(change(before, after, fleet)) if each.startswith("nothing_begins")]
    rule = "nothing_begins_in_an_order_that_winds_down: "
    assert found == [
        f"{rule}FF was announced for {known.id}, which is winding down",
        f"{rule}evacuate of web-2 of {known.id} began, which is winding down",
        f"{rule}evacuate of zoo-0 of {known.id} began, which is winding down",
        f"{rule}work of the host of {known.id} began, which is winding down",
    ]


def test_looking_again_changes_nothing() -> None:
    fleet, order = leaving()
    again = aborted(fleet, order)
    assert fleet.advance(order.id) == again
    winding_down.begin(fleet.draft, order.id, by="ops", why=WHY)
    assert fleet.advance(order.id) == again
