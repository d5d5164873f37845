"""Hooks as host steps of an order: their drivers and their order."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    EXTERNAL,
    HOOK,
    SIMULATED,
    HostName,
    HostState,
    HostTask,
    Kind,
    OrderState,
    ServiceMode,
    StageKind,
    StepState,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import host_work, interventions, reports
from forewarn.core.policy import Policy
from forewarn.core.redaction import unmarked
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

ALL = Policy(hooks=frozenset(HostTask))


def fleet(policy: Policy = ALL) -> Fleet:
    return Fleet(machine("web-0"), hosts=["host-2"], policy=policy)


def serviced(there: Fleet, **terms: object) -> Order:
    return there.service(mode=ServiceMode.IN_PLACE, **terms)


def running(there: Fleet, order: Order) -> list[HostTask]:
    return [step.task for step in there.draft.orders[order.id].running_host_steps]


def test_hooks_run_in_order() -> None:
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
    assert seen == [HostTask.BEFORE, HostTask.WORK, HostTask.AFTER, HostTask.HEALTH, HostTask.UNCORDON]
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
def test_the_work_is_done_by_a_hook_a_named_driver_or_the_hosts_driver(
    policy: Policy, driver: str, host_driver: str | None, who: str
) -> None:
    order = serviced(fleet(policy), driver=driver, host_driver=host_driver)
    assert {step.driver for step in order.host_steps if step.task is HostTask.WORK} == {who}


def test_work_by_a_hook_is_not_simulated() -> None:
    there = fleet()
    order = serviced(there, driver=SIMULATED)
    assert not order.simulated
    assert "simulated" not in there.history(Kind.ORDER_PLACED)[-1]
    assert serviced(fleet(Policy()), driver=SIMULATED).simulated


def test_a_rehearsal_runs_no_hook() -> None:
    order = serviced(fleet())
    rehearsed = replace(order, terms=replace(order.terms, rehearsal="mine"))
    steps = [(step.task, step.driver) for step in host_work.plan(rehearsed, ALL, SIMULATED)]
    assert steps == [(HostTask.WORK, SIMULATED)]


def test_no_machine_starts_before_the_cordon_hook_is_done() -> None:
    there = fleet()
    order = serviced(there)
    there.pass_(HOUR / 4)
    assert there.running(order.id) == ()
    assert "host host-1: is not cordoned yet: its hook has not ended" in there.waits(order.id)
    there.finish_host(order.id, HostTask.CORDON)
    assert [step.state for step in there.draft.orders[order.id].steps] == [StepState.RUNNING]


def test_a_failed_cordon_hook_is_shown_until_a_person_decides() -> None:
    there = fleet()
    order = serviced(there)
    reports.step_failed(there.draft, AttemptId(order.id, "host/cordon", 1), why="no route")
    there.pass_(HOUR / 4)
    assert there.draft.orders[order.id].state is OrderState.FAILED
    assert "host host-1: is not cordoned yet: its hook failed, no route" in there.waits(order.id)
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert running(there, order) == [HostTask.CORDON]


# Abandoned and cancelled orders


def given_up(there: Fleet, order: Order) -> Order:
    return there.draft.orders[order.id]


def host_state(there: Fleet) -> HostState:
    return there.draft.hosts[HostName("host-1")].state


def test_a_cancelled_order_ends_after_its_hook_has_uncordoned_the_host() -> None:
    there = fleet()
    order = serviced(there)
    there.finish_host(order.id, HostTask.CORDON)
    cancelled = interventions.cancel(there.draft, order.id, by="olga")
    assert (cancelled.state, cancelled.open, there.events()) == (OrderState.CANCELLED, True, ())
    assert running(there, order) == [HostTask.UNCORDON]
    assert there.waits(order.id) == [
        f"order {order.id}: being cancelled by olga: ends once host host-1 is uncordoned"
    ]
    assert host_state(there) is HostState.CORDONED
    there.finish_host(order.id, HostTask.UNCORDON)
    over = given_up(there, order)
    assert (over.state, over.open, over.why) == (OrderState.CANCELLED, False, "cancelled")
    assert host_state(there) is HostState.OK


def test_an_order_that_is_being_cancelled_cannot_be_cancelled_again() -> None:
    there = fleet()
    order = serviced(there)
    interventions.cancel(there.draft, order.id, by="olga")
    with pytest.raises(Conflict, match="is being cancelled by olga already"):
        interventions.cancel(there.draft, order.id, by="otto")


def test_the_cordon_hook_is_called_off_before_the_uncordon_hook_runs() -> None:
    there = fleet()
    order = serviced(there)
    interventions.cancel(there.draft, order.id, by="olga")
    assert running(there, order) == [HostTask.CORDON]
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/cordon", 1))
    there.advance(order.id)
    assert running(there, order) == [HostTask.UNCORDON]


def test_a_host_that_its_hook_cannot_uncordon_stays_cordoned_and_says_what_to_do() -> None:
    there = fleet()
    order = serviced(there)
    there.finish_host(order.id, HostTask.CORDON)
    interventions.cancel(there.draft, order.id, by="olga")
    reports.step_failed(there.draft, AttemptId(order.id, "host/uncordon", 1), why="no route", again=True)
    there.advance(order.id)
    assert running(there, order) == [HostTask.UNCORDON]
    reports.step_failed(there.draft, AttemptId(order.id, "host/uncordon", 2), why="no route")
    there.advance(order.id)
    assert host_state(there) is HostState.CORDONED
    assert given_up(there, order).why == (
        "cancelled; host host-1 stays cordoned: its hook has not uncordoned it (no route): do that by "
        "hand, then `forewarn host uncordon host-1`"
    )


def test_without_a_cordon_hook_no_uncordon_hook_runs() -> None:
    there = fleet(Policy(hooks=frozenset({HostTask.UNCORDON})))
    order = serviced(there)
    interventions.cancel(there.draft, order.id, by="olga")
    assert (given_up(there, order).open, host_state(there)) == (False, HostState.OK)


def at_work(there: Fleet, **terms: object) -> Order:
    order = serviced(there, **terms)
    there.pass_(HOUR / 4)
    return order


def test_a_host_with_unfinished_work_stays_cordoned_when_its_order_is_abandoned() -> None:
    there = fleet(Policy(hooks=frozenset({HostTask.WORK})))
    order = at_work(there)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    over = there.advance(order.id)
    kept = (
        "host host-1 stays cordoned: the work on it has begun and is not finished: "
        "check it, finish or undo that, then `forewarn host uncordon host-1`"
    )
    assert (over.open, over.why) == (False, f"abandoned by olga; {kept}")
    host = there.draft.hosts[HostName("host-1")]
    assert (host.state, host.cordoned_for) == (HostState.CORDONED, None)
    assert there.history(Kind.HOST_CHANGED)[-1] == kept


def test_no_hook_uncordons_a_host_with_unfinished_work() -> None:
    there = fleet(Policy(hooks=frozenset({HostTask.CORDON, HostTask.WORK, HostTask.UNCORDON})))
    order = serviced(there)
    there.finish_host(order.id, HostTask.CORDON)
    there.pass_(HOUR / 4)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    assert not there.advance(order.id).open
    assert host_state(there) is HostState.CORDONED


def test_a_host_whose_work_was_never_taken_up_is_uncordoned() -> None:
    there = fleet(Policy())
    order = at_work(there, host_driver=EXTERNAL)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    assert there.advance(order.id).why == "abandoned by olga"
    assert host_state(there) is HostState.OK


def test_the_uncordon_hook_is_not_called_off_if_the_work_was_never_taken_up() -> None:
    there = fleet(Policy(hooks=frozenset({HostTask.CORDON, HostTask.UNCORDON})))
    order = serviced(there, host_driver=EXTERNAL)
    there.finish_host(order.id, HostTask.CORDON)
    there.pass_(HOUR / 4)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    (step,) = there.advance(order.id).running_host_steps
    assert step.task is HostTask.UNCORDON
    assert host_work.uncordons_unfinished_host(there.draft.orders[order.id], step)


# The health check before the host is uncordoned

RETURNING = Policy(hooks=frozenset({HostTask.HEALTH, HostTask.CORDON, HostTask.UNCORDON}))


def emptied(there: Fleet) -> Order:
    """Evacuate a host with returning machines, and finish the work on it."""
    order = there.service(returning=True)
    there.finish_host(order.id, HostTask.CORDON)
    there.pass_(10 * MINUTE)
    there.finish(order.id)
    there.pass_(2 * MINUTE)
    there.finish_host(order.id)
    return order


def coming_back(there: Fleet, order: Order) -> bool:
    return there.draft.orders[order.id].stages[-1].kind is StageKind.RETURN


def ill(there: Fleet, order: Order) -> None:
    (step,) = there.draft.orders[order.id].running_host_steps
    assert step.task is HostTask.HEALTH
    attempt = AttemptId(order.id, step.subject, step.attempt)
    reports.step_failed(there.draft, attempt, why="3 of 4 fans turn")
    there.advance(order.id)


def test_machines_return_once_their_host_is_healthy_and_uncordoned() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    there.pass_(HOUR)
    assert (running(there, order), host_state(there)) == ([HostTask.HEALTH], HostState.CORDONED)
    assert not coming_back(there, order)
    there.finish_host(order.id, HostTask.HEALTH)
    assert (running(there, order), host_state(there)) == ([HostTask.UNCORDON], HostState.CORDONED)
    assert there.events() == ()
    there.finish_host(order.id, HostTask.UNCORDON)
    assert host_state(there) is HostState.OK
    assert coming_back(there, order)
    assert len(there.events()) == 1


def test_an_unhealthy_host_stays_cordoned_and_its_machines_stay_away() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    ill(there, order)
    there.pass_(HOUR)
    assert there.draft.orders[order.id].state is OrderState.FAILED
    assert there.waits(order.id) == ["health of host host-1: failed: 3 of 4 fans turn"]
    assert (host_state(there), coming_back(there, order)) == (HostState.CORDONED, False)
    with pytest.raises(Conflict, match="too late to cancel"):
        interventions.cancel(there.draft, order.id, by="olga")


def test_a_retry_repeats_the_health_check_and_the_order_goes_on() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    ill(there, order)
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert running(there, order) == [HostTask.HEALTH]
    there.finish_host(order.id, HostTask.HEALTH)
    there.finish_host(order.id, HostTask.UNCORDON)
    assert coming_back(there, order)


def test_an_unhealthy_host_stays_cordoned_when_its_order_is_abandoned() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    ill(there, order)
    over = interventions.abandon(there.draft, order.id, by="olga")
    kept = (
        "host host-1 stays cordoned: it is not healthy (3 of 4 fans turn): check it, "
        "then `forewarn host uncordon host-1`"
    )
    assert (over.open, host_state(there)) == (False, HostState.CORDONED)
    assert over.why.endswith(kept)
    assert there.history(Kind.HOST_CHANGED)[-1] == kept
    assert there.machine("web-0").host == "host-2"


def test_a_cancelled_health_hook_leaves_the_host_cordoned() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/health", 1))
    over = there.advance(order.id)
    assert (over.open, host_state(there)) == (False, HostState.CORDONED)
    assert "host host-1 stays cordoned: it is not known to be healthy: check it" in over.why


def test_machines_do_not_return_to_a_host_that_its_hook_cannot_uncordon() -> None:
    there = fleet(RETURNING)
    order = emptied(there)
    there.finish_host(order.id, HostTask.HEALTH)
    reports.step_failed(there.draft, AttemptId(order.id, "host/uncordon", 1), why="no route")
    there.advance(order.id)
    assert (host_state(there), there.events()) == (HostState.CORDONED, ())
    assert "uncordon of host host-1: failed: no route" in there.waits(order.id)


# Cordons by a driver


def on_nova(hooks: frozenset[HostTask] = frozenset()) -> Fleet:
    """Create a host whose driver can cordon it."""
    there = fleet(Policy(hooks=hooks, cordoning=frozenset({"nova"})))
    there.draft.put_host(replace(there.draft.hosts[HostName("host-1")], driver="nova"))
    return there


def cordoned(*hooks: HostTask, driver: str = "nova") -> dict[HostTask, str]:
    order = serviced(on_nova(frozenset(hooks)), driver=driver)
    return {step.task: step.driver for step in order.host_steps if step.task is not HostTask.WORK}


def test_a_driver_cordons_if_there_is_no_hook() -> None:
    assert cordoned() == {HostTask.CORDON: "nova", HostTask.UNCORDON: "nova"}
    assert cordoned(HostTask.UNCORDON) == {HostTask.CORDON: "nova", HostTask.UNCORDON: HOOK}
    assert cordoned(HostTask.CORDON) == {HostTask.CORDON: HOOK}


def test_the_hosts_own_driver_cordons_whichever_driver_does_the_work() -> None:
    assert cordoned(driver=EXTERNAL) == {HostTask.CORDON: "nova", HostTask.UNCORDON: "nova"}


def test_simulated_work_cordons_nothing() -> None:
    assert cordoned(driver=SIMULATED) == {}


def test_machines_wait_for_the_driver_to_cordon() -> None:
    there = on_nova()
    order = serviced(there, driver="nova")
    there.pass_(HOUR / 4)
    assert there.waits(order.id) == ["host host-1: is not cordoned yet: driver nova has not ended"]
    there.finish_host(order.id, HostTask.CORDON)
    assert running(there, order) == [HostTask.WORK]


def test_a_host_that_its_driver_cannot_uncordon_stays_cordoned() -> None:
    there = on_nova()
    order = serviced(there, driver="nova")
    there.finish_host(order.id, HostTask.CORDON)
    interventions.cancel(there.draft, order.id, by="olga")
    reports.step_failed(there.draft, AttemptId(order.id, "host/uncordon", 1), why="no")
    there.advance(order.id)
    assert "driver nova has not uncordoned it (no): do that by hand" in unmarked(given_up(there, order).why)
