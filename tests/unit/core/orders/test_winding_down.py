"""Orders of an aborted rollout: started work ends, and nothing else is announced or begun."""

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
    """Announce work on a host as a rollout does."""
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
    """Evacuate three machines of one event, two at a time, and announce another group."""
    fleet, order = serviced(*(machine(f"web-{number}") for number in range(3)), machine("zoo-0"))
    web, _ = fleet.events()
    fleet.approve(web)
    return fleet, order


def test_running_moves_end_and_the_others_are_cancelled() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    moot, runs = StepState.MOOT, StepState.RUNNING
    assert steps(fleet, order) == {"web-0": runs, "web-1": runs, "web-2": moot, "zoo-0": moot}
    (event,) = fleet.events()
    assert [each.name for each in event.resources] == ["web-0", "web-1"]
    assert event.status is EventStatus.STARTED
    assert fleet.waits(order.id) == [f"order {order.id}: ends after all work that has started: {WHY}"]
    assert host_state(fleet) is HostState.CORDONED


def test_moved_machines_stay_and_the_host_is_uncordoned() -> None:
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


def test_of_many_moved_machines_the_first_are_named() -> None:
    fleet, order = serviced(*(machine(f"web-{number:02}") for number in range(12)))
    fleet.draft.put_host(replace(fleet.draft.hosts[HOST], at_once=12))
    fleet.approve(fleet.events()[0], by="web-00")
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    assert unmarked(fleet.advance(order.id).why).endswith("web-09 on host-3 and 2 more")


def test_a_failed_move_waits_for_a_person_and_is_not_retried() -> None:
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


def test_a_move_that_waits_for_a_retry_is_cancelled_and_its_machine_runs() -> None:
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


def test_external_moves_are_cancelled_unless_they_were_taken_up() -> None:
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
def test_external_work_on_a_host_is_cancelled_unless_it_was_taken_up(taken_up: bool) -> None:
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


def test_earlier_failures_still_wait_for_a_person() -> None:
    fleet, order = serviced(machine("a-0"), machine("b-0"), driver="external")
    fleet.approve(fleet.events()[0], by="a-0")
    fleet.fail(order.id)
    assert aborted(fleet, order).state is OrderState.FAILED
    assert fleet.events()[0].resources[0].name == "a-0"
    over = interventions.abandon(fleet.draft, order.id, by="ops")
    assert (over.state, host_state(fleet)) == (OrderState.FAILED, HostState.OK)


PRECHECKED = Policy(prechecking=frozenset({"libvirt"}))


def answered(fleet: Fleet, order: Order, **refused: str) -> None:
    """Answer the questions to the driver: it agrees, except for some machines."""
    for step in fleet.draft.orders[order.id].steps:
        asked = step.precheck
        if asked is not None and asked.answered_at is None:
            attempt = AttemptId(order.id, step.machine, step.attempt)
            why = refused.get(step.group, "")
            move_prechecks.answered(fleet.draft, attempt, step.work, asked.target, refused=why)
    fleet.advance(order.id)
    fleet.turn()


def refused_and_aborted(fleet: Fleet, order: Order) -> None:
    """Refuse a redeploy too, and abort while another machine still moves."""
    answered(fleet, order, b="no disk")
    answered(fleet, order, b="no disk")
    assert steps(fleet, order)["b-0"] is StepState.FAILED
    aborted(fleet, order)


def nothing_is_left_to_retry(fleet: Fleet, order: Order) -> None:
    assert steps(fleet, order)["b-0"] is StepState.MOOT
    with pytest.raises(Conflict):
        interventions.retry(fleet.draft, order.id, by="ops", policy=PRECHECKED)


def test_a_move_that_its_driver_refused_in_advance_is_cancelled() -> None:
    fleet, order = serviced(live("a-0"), live("b-0"), driver="libvirt", policy=PRECHECKED)
    for _ in range(2):  # all other hosts
        answered(fleet, order, b="no disk")
    fleet.approve(fleet.events()[0], by="a-0")
    refused_and_aborted(fleet, order)
    nothing_is_left_to_retry(fleet, order)
    assert steps(fleet, order)["a-0"] is StepState.RUNNING
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED


def test_a_move_that_failed_in_every_way_is_cancelled() -> None:
    fleet, order = serviced(live("b-0"), driver="libvirt", policy=PRECHECKED)
    answered(fleet, order)
    fleet.approve(fleet.events()[0], by="b-0")
    for _ in range(PRECHECKED.move_retries + 1):
        fleet.fail(order.id)
        answered(fleet, order)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.work, step.begun_at is None) == (Work.REDEPLOY, False)
    fleet.pass_(2 * MINUTE)  # the event of the live move ends
    refused_and_aborted(fleet, order)
    nothing_is_left_to_retry(fleet, order)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED


def test_a_stage_withdrawn_by_a_pause_is_not_announced_again() -> None:
    fleet, order = leaving()
    lifecycle.pause(fleet.draft, order.id, why="lunch")
    fleet.advance(order.id)
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.pass_(60 * MINUTE)
    assert fleet.events() == ()
    assert len(fleet.history(Kind.EVENT_SCHEDULED)) == 2


def test_a_machine_that_arrives_later_is_not_announced() -> None:
    fleet, order = leaving()
    aborted(fleet, order)
    fleet.draft.put_machine(machine("late-0"))
    fleet.draft.put_group(replace(fleet.draft.groups["web"], name="late"))  # type: ignore[index,arg-type]
    fleet.advance(order.id)
    assert len(fleet.events()) == 1


# The host itself


def test_an_evacuated_host_without_work_is_uncordoned() -> None:
    fleet, order = serviced(machine("web-0"), staying("web-1", domain=1))
    fleet.approve(fleet.events()[0])
    fleet.finish(order.id)
    aborted(fleet, order)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order)[0] is OrderState.CANCELLED
    assert (steps(fleet, order)["web-1"], host_state(fleet)) == (StepState.MOOT, HostState.OK)


def test_announced_work_is_cancelled() -> None:
    fleet, order = serviced(machine("a-0"), staying("b-0"))
    fleet.approve(fleet.events()[0], by="a-0")
    fleet.finish(order.id)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED, EventStatus.SCHEDULED]
    aborted(fleet, order)
    assert [event.status for event in fleet.events()] == [EventStatus.STARTED]
    assert fleet.history(Kind.EVENT_CANCELLED) == [WHY]


def test_the_hook_uncordons_the_host_once_no_move_runs() -> None:
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


def test_work_that_has_begun_ends_and_the_healthy_host_is_uncordoned() -> None:
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
    """Start the `before` hook of a host with a machine that will restart with it."""
    fleet, order = serviced(staying("a-0"), policy=HOOKS)
    fleet.approve(fleet.events()[0], by="a-0")
    assert fleet.machine("a-0").state is MachineState.RESTARTING
    return fleet, order


def test_the_hook_before_the_work_is_followed_only_by_the_hook_after_it() -> None:
    fleet, order = made_ready()
    aborted(fleet, order)
    assert (fleet.machine("a-0").state, fleet.events()) == (MachineState.RUNNING, ())
    for task in (HostTask.BEFORE, HostTask.AFTER, HostTask.UNCORDON):
        assert [each.task for each in fleet.draft.orders[order.id].running_host_steps] == [task]
        fleet.finish_host(order.id, task)
    assert (outcome(fleet, order), host_state(fleet)) == ((OrderState.CANCELLED, WHY), HostState.OK)
    assert on_host(fleet, order)[HostTask.WORK] is StepState.MOOT


@pytest.mark.parametrize("retried", [True, False])
def test_a_hook_that_failed_before_the_work_waits_for_a_person(retried: bool) -> None:
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
        assert "stays cordoned: the work on it has begun and is not finished" in outcome(fleet, order)[1]


def test_machines_do_not_return_to_a_finished_host() -> None:
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


# Machines that are treated in place


def two_stages() -> tuple[Fleet, Order]:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), hosts=OTHERS)
    order = fleet.maintain(rollout="R")
    fleet.approve(fleet.events()[0])
    return fleet, order


def test_the_started_stage_ends_and_the_next_is_never_announced() -> None:
    fleet, order = two_stages()
    aborted(fleet, order)
    assert steps(fleet, order) == {"web-0": StepState.RUNNING, "web-1": StepState.MOOT}
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order) == (OrderState.CANCELLED, WHY)
    assert len(fleet.history(Kind.EVENT_SCHEDULED)) == 1


def test_an_order_whose_work_had_all_started_is_done() -> None:
    fleet = Fleet(machine("web-0"), hosts=OTHERS, policy=Policy(hooks=frozenset({HostTask.HEALTH})))
    order = fleet.maintain(rollout="R")
    fleet.approve(fleet.events()[0])
    aborted(fleet, order)
    fleet.finish(order.id)
    fleet.turn(2 * MINUTE)
    fleet.advance(order.id)
    assert outcome(fleet, order) == (OrderState.DONE, WHY)


def test_the_checker_finds_work_that_begins_nevertheless() -> None:
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


def test_advancing_again_changes_nothing() -> None:
    fleet, order = leaving()
    again = aborted(fleet, order)
    assert fleet.advance(order.id) == again
    winding_down.begin(fleet.draft, order.id, by="ops", why=WHY)
    assert fleet.advance(order.id) == again
