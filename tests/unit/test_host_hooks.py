"""Which hooks are steps of an order, who does them, and in which order."""

import pytest

from forewarn.core.copies import replace
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import host_work, interventions, reports
from forewarn.core.policy import Policy
from forewarn.core.words import EXTERNAL, HOOK, SIMULATED, HostTask, OrderState, ServiceMode, StepState
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

ALL = Policy(hooks=frozenset(HostTask))


def fleet(policy: Policy = ALL) -> Fleet:
    return Fleet(machine("web-0"), hosts=["host-2"], policy=policy)


def serviced(there: Fleet, **terms: object) -> Order:
    return there.service(mode=ServiceMode.IN_PLACE, **terms)


def running(there: Fleet, order: Order) -> list[HostTask]:
    return [step.task for step in there.draft.orders[order.id].running_host_steps]


def test_each_hook_has_its_turn() -> None:
    there = fleet()
    order = serviced(there)
    assert running(there, order) == [HostTask.CORDON]
    assert f"{there.draft.orders[order.id].host_steps[0].driver}" == HOOK
    there.finish_host(order.id, HostTask.CORDON)
    there.pass_(HOUR / 4)
    seen = []
    for _ in range(5):
        (task,) = running(there, order)
        seen.append(task)
        there.finish_host(order.id, task)
    assert seen == [HostTask.BEFORE, HostTask.WORK, HostTask.AFTER, HostTask.UNCORDON, HostTask.HEALTH]
    there.pass_(2 * MINUTE)
    assert not there.draft.orders[order.id].open


@pytest.mark.parametrize(
    ("policy", "driver", "host_driver", "who"),
    [
        (ALL, SIMULATED, None, HOOK),
        (ALL, SIMULATED, EXTERNAL, EXTERNAL),
        (Policy(), SIMULATED, None, SIMULATED),
        (Policy(), "libvirt", None, EXTERNAL),
        (Policy(working_on_hosts=frozenset({"libvirt"})), "libvirt", None, "libvirt"),
    ],
)
def test_the_work_is_done_by_a_hook_or_who_is_named_or_the_driver_if_it_can(
    policy: Policy, driver: str, host_driver: str | None, who: str
) -> None:
    order = serviced(fleet(policy), driver=driver, host_driver=host_driver)
    assert {step.driver for step in order.host_steps if step.task is HostTask.WORK} == {who}


def test_no_hook_is_run_in_a_rehearsal() -> None:
    order = serviced(fleet())
    rehearsed = replace(order, terms=replace(order.terms, rehearsal="mine"))
    steps = [(step.task, step.driver) for step in host_work.plan(rehearsed, ALL)]
    assert steps == [(HostTask.WORK, SIMULATED)]


def test_nothing_starts_before_the_hook_that_cordons_is_done() -> None:
    there = fleet()
    order = serviced(there)
    there.pass_(HOUR / 4)
    assert there.running(order.id) == ()
    assert "host host-1: is not cordoned yet: its hook has not ended" in there.waits(order.id)
    there.finish_host(order.id, HostTask.CORDON)
    assert [step.state for step in there.draft.orders[order.id].steps] == [StepState.RUNNING]


def test_a_hook_that_cannot_cordon_is_shown_until_a_person_decides() -> None:
    there = fleet()
    order = serviced(there)
    reports.step_failed(there.draft, AttemptId(order.id, "host/cordon", 1), why="no route")
    there.pass_(HOUR / 4)
    assert there.draft.orders[order.id].state is OrderState.FAILED
    assert "host host-1: is not cordoned yet: its hook failed, no route" in there.waits(order.id)
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert running(there, order) == [HostTask.CORDON]
