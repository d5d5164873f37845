"""Hosts that do not come back from work on them: when they are lost, and how they are recovered."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    HostName,
    HostState,
    HostTask,
    Kind,
    OrderState,
    ServiceMode,
    StepState,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import host_steps, interventions, lost_hosts, reports
from tests.unit.slices import HOUR, MINUTE, NOON, SECOND, Fleet, machine

HOST = HostName("host-1")
BEGUN = NOON + HOUR / 4


def worked_on(**terms: object) -> tuple[Fleet, Order]:
    """Start the work on a host."""
    there = Fleet(machine("web-0"), hosts=["host-2"])
    order = there.service(mode=ServiceMode.IN_PLACE, **terms)
    there.pass_(HOUR / 4)
    assert [step.task for step in there.draft.orders[order.id].running_host_steps] == [HostTask.WORK]
    return there, there.draft.orders[order.id]


def lost(**terms: object) -> tuple[Fleet, Order]:
    there, order = worked_on(**terms)
    there.pass_(HOUR)
    assert state(there) is HostState.LOST
    return there, there.draft.orders[order.id]


def state(there: Fleet) -> HostState:
    return there.draft.hosts[HOST].state


def wait(there: Fleet, why: str = "") -> Order:
    return lost_hosts.wait(there.draft, there.draft.hosts[HOST], by="olga", why=why, policy=there.policy)


def test_a_host_is_lost_when_the_work_on_it_takes_too_long() -> None:
    there, order = worked_on()
    there.pass_(HOUR - SECOND)
    assert state(there) is HostState.CORDONED
    assert there.draft.orders[order.id].due_at is not None
    there.pass_(SECOND)
    assert state(there) is HostState.LOST
    assert there.history(Kind.HOST_LOST) == [
        "not back by 2026-01-05T13:15:00Z, 1 h after the work on it began"
    ]


def test_an_order_is_due_when_its_host_must_be_back() -> None:
    there, order = worked_on(host_driver=EXTERNAL)
    reports.step_running(there.draft, AttemptId(order.id, "host/work", 1), look_at=None)
    assert there.advance(order.id).due_at == BEGUN + HOUR


def test_an_order_on_a_lost_host_lists_the_options() -> None:
    _, order = lost()
    (why,) = (wait for wait in order.waiting if wait.stuck)
    for words in ("host fail host-1", "host wait host-1", "goes on by itself"):
        assert words in why.reason


def test_a_lost_host_that_comes_back_resumes_its_order() -> None:
    there, order = lost()
    there.finish_host(order.id)
    assert state(there) is not HostState.LOST
    assert "lost to cordoned: a report on the work on it has arrived" in there.history(Kind.HOST_CHANGED)
    there.pass_(2 * MINUTE)
    assert order.id not in there.draft.orders
    assert there.history(Kind.ORDER_DONE) == ["simulated"]
    assert state(there) is HostState.OK


def test_a_failure_report_brings_back_a_lost_host() -> None:
    there, order = lost()
    reports.step_failed(there.draft, AttemptId(order.id, "host/work", 1), why="its board is broken")
    assert there.advance(order.id).state is OrderState.FAILED
    assert state(there) is HostState.CORDONED


def test_waiting_for_a_lost_host_grants_the_full_time_again() -> None:
    there, _ = lost()
    wait(there, "it checks its disks")
    assert state(there) is HostState.CORDONED
    assert there.history(Kind.HOST_CHANGED)[-1] == (
        "lost to cordoned: waited for until 2026-01-05T14:15:00Z: it checks its disks"
    )
    there.pass_(HOUR - SECOND)
    assert state(there) is HostState.CORDONED
    there.pass_(SECOND)
    assert state(there) is HostState.LOST


def test_only_a_lost_host_can_be_waited_for() -> None:
    there, _ = worked_on()
    with pytest.raises(Conflict, match="is cordoned: only a lost host can be waited for"):
        wait(there)


def test_a_server_that_was_away_gives_external_programs_time_to_report() -> None:
    there, order = worked_on()
    there.pass_(2 * HOUR)
    assert state(there) is HostState.CORDONED
    work = host_steps.find(there.draft.orders[order.id], HostTask.WORK)
    assert work is not None
    assert work.back_by == BEGUN + 2 * HOUR + lost_hosts.HEARD_WITHIN
    there.pass_(lost_hosts.HEARD_WITHIN)
    assert state(there) is HostState.LOST


def test_a_lost_host_that_is_failed_is_fenced_before_recovery() -> None:
    there, order = lost()
    failed = there.maintain(action=Action.FAIL)
    assert not there.draft.orders[order.id].open
    assert failed.steps[0].state is StepState.WAITING
    there.finish_host(failed.id, HostTask.FENCE)
    assert there.draft.orders[failed.id].steps[0].state is StepState.RUNNING


@pytest.mark.parametrize("action", [Action.MAINTENANCE, Action.SERVICE, Action.DEGRADE, Action.UNCORDON])
def test_no_other_order_is_accepted_for_a_lost_host(action: Action) -> None:
    there, _ = lost()
    with pytest.raises(Conflict, match="is lost: fail it, or wait for it, first"):
        there.maintain(action=action)


def test_a_lost_host_can_be_restored_once_no_order_works_on_it() -> None:
    there, order = lost()
    with pytest.raises(Conflict, match="still works on it"):
        there.maintain(action=Action.RESTORE)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    there.advance(order.id)
    assert state(there) is HostState.LOST
    there.maintain(action=Action.RESTORE)
    assert state(there) is HostState.OK


def test_a_machine_of_a_lost_host_can_only_be_terminated() -> None:
    there, _ = lost()
    with pytest.raises(Conflict, match=r'is on host "host-1", which is lost: fail it, or wait for it first'):
        there.order("web-0", Action.REDEPLOY)
    assert there.order("web-0", Action.TERMINATE).open


def test_an_older_order_does_not_move_machines_off_a_lost_host() -> None:
    there, order = worked_on()
    redeploy = there.order("web-0", Action.REDEPLOY)
    there.pass_(HOUR)
    interventions.abandon(there.draft, order.id, by="olga")
    reports.step_cancelled(there.draft, AttemptId(order.id, "host/work", 1))
    there.advance(order.id)
    there.pass_(HOUR / 4)
    assert there.running(redeploy.id) == ()
    assert "web-0: is on host-1, which is away: fail that first" in there.waits(redeploy.id)
    there.maintain(action=Action.RESTORE)
    there.turn()
    there.advance(redeploy.id)
    assert [step.target for step in there.running(redeploy.id)] == ["host-2"]


def test_a_degraded_host_is_degraded_again_when_it_is_back() -> None:
    there, order = worked_on()
    there.draft.put_host(replace(there.draft.hosts[HOST], state=HostState.DEGRADED))
    there.pass_(HOUR)
    there.finish_host(order.id)
    assert state(there) is HostState.DEGRADED


def test_a_host_that_has_left_the_fleet_cannot_be_lost() -> None:
    there, order = worked_on()
    del there.draft.hosts[HOST]
    assert lost_hosts.mark_if_overdue(there.draft, order, there.policy) == order
    assert lost_hosts.due_at(there.draft, order) is None
    assert lost_hosts.why_lost(there.draft, order) == ()


def test_retried_work_has_the_full_time_again() -> None:
    there, order = worked_on()
    reports.step_failed(there.draft, AttemptId(order.id, "host/work", 1), why="its board is broken")
    there.advance(order.id)
    there.pass_(3 * HOUR)
    interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    work = host_steps.find(there.draft.orders[order.id], HostTask.WORK)
    assert work is not None
    assert work.back_by == there.now + HOUR


def silent() -> tuple[Fleet, Order]:
    there, order = worked_on(host_driver=EXTERNAL)
    reports.heartbeat(there.draft, order.id, heard_at=there.now, policy=there.policy)
    there.pass_(HOUR)
    reports.fail_silent_steps(there.draft, order.id, by="forewarn", why="silent", policy=there.policy)
    return there, order


def test_missing_heartbeats_do_not_bring_back_a_lost_host() -> None:
    there, order = silent()
    assert there.draft.orders[order.id].state is OrderState.FAILED
    assert state(there) is HostState.LOST
    with pytest.raises(Conflict, match="no work on it is under way: retry its order, fail it"):
        wait(there)


def test_a_lost_host_stays_lost_during_a_retry_until_a_report_arrives() -> None:
    there, order = silent()
    retried = interventions.retry(there.draft, order.id, by="olga", policy=there.policy)
    assert [each.reason[:20] for each in retried.waiting if each.stuck] == ["lost: `forewarn host"]
    there.finish_host(order.id)
    assert state(there) is HostState.OK
