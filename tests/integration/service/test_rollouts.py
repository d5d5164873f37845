"""Rollouts on a real store, with a manual clock."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from forewarn.control.fleet.fleet_application import CheckedFleet
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import (
    Action,
    EventStatus,
    HostName,
    Kind,
    MachineState,
    OrderId,
    OrderState,
    Priority,
    Work,
)
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.fleet.fleet_changes import FleetChange, ObservedMachine
from forewarn.core.model.declaration import FleetSpec, HostSpec
from forewarn.core.model.event import NoticeSummary
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.rollout import FailureLimit, Rollout, RolloutState, RolloutTerms, WaveState
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.rollouts import planning as rules
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.service.counts import tries
from tests.helpers.service.harness import START, Service, fleet, group, machine


def three_domains() -> FleetSpec:
    """Four hosts: two with domain 0 of web, one with domain 1, and one with a standalone machine."""
    return fleet(
        group("web"),
        machine("web-0", "host-1", group="web", domain=0),
        machine("web-1", "host-2", group="web", domain=1),
        machine("web-2", "host-3", group="web", domain=0),
        machine("solo", "host-4"),
        hosts=4,
    )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(three_domains())
    yield service
    service.close()


def announced_machines(service: Service) -> list[str]:
    """Return the machines in events that have not started, by name."""
    events = service.everything().events.values()
    return sorted(n.name for e in events if e.status is EventStatus.SCHEDULED for n in e.resources)


def reasons_of(service: Service, rollout: Rollout) -> list[str]:
    waiting = service.rollouts.rollout(rollout.id).waiting
    return [f"{wait.what}: {wait.reason}" for wait in waiting]


def states(rollout: Rollout) -> list[str]:
    return [wave.state.value for wave in rollout.waves]


def order_of(service: Service, rollout: Rollout, host: str) -> str:
    pairs = [pair for wave in rollout.begun for pair in zip(wave.hosts, wave.orders, strict=True)]
    return dict(pairs)[HostName(host)]


def test_a_rollout_goes_wave_by_wave_to_its_end(service: Service) -> None:
    rollout = service.roll(hosts_at_once=10)
    assert announced_machines(service) == ["solo", "web-0", "web-2"]
    assert states(rollout) == ["announced", "planned"]
    assert reasons_of(service, rollout) == [
        "web: update domain 1 waits for domain 0",
        "host-2: wave 2 waits for wave 1",
    ]
    service.advance(minutes=15)
    assert states(service.rollout(rollout)) == ["started", "planned"]
    service.advance(minutes=5)
    assert states(service.rollout(rollout)) == ["done", "announced"]
    assert announced_machines(service) == ["web-1"]
    service.advance(hours=1)
    rollout = service.rollout(rollout)
    assert (rollout.state, states(rollout)) == (RolloutState.DONE, ["done", "done"])
    assert rollout.ended_at == START + timedelta(minutes=40)
    kinds = [record.kind for record in service.history() if record.kind.startswith("rollout")]
    assert kinds == [Kind.ROLLOUT_BEGUN, Kind.ROLLOUT_DONE]


def test_approvals_let_a_wave_start_early(service: Service) -> None:
    service.poll("web-0")
    rollout = service.roll("host-1", "host-2")
    service.approve("web-0", *service.events("web-0"))
    assert states(service.rollout(rollout)) == ["started", "planned"]


def test_a_gap_is_kept_between_waves(service: Service) -> None:
    rollout = service.roll("host-1", "host-3", gap=timedelta(hours=1))
    service.advance(minutes=20)
    gap = "wave 2 waits for the gap after wave 1, until 2026-01-05T13:20:00Z"
    assert reasons_of(service, rollout) == [f"host-3: {gap}"]
    service.advance(minutes=59)
    assert announced_machines(service) == []
    service.advance(minutes=1)
    assert announced_machines(service) == ["web-2"]


def test_a_dry_run_shows_the_plan_and_does_nothing(service: Service) -> None:
    before = service.history()
    plan = service.rollouts.plan(RolloutRequest(hosts=None, work=Work.FREEZE, hosts_at_once=2, by="test"))
    assert [list(wave.hosts) for wave in plan.rollout.waves] == [["host-1", "host-3"], ["host-2", "host-4"]]
    assert [when.end_at - START for when in plan.expected] == [timedelta(minutes=20), timedelta(minutes=40)]
    assert plan.warnings == ("never polled: solo, web-0, web-1, web-2",)
    assert service.history() == before
    assert announced_machines(service) == []


def test_a_machine_that_just_polled_causes_no_warning(service: Service) -> None:
    service.poll("solo")
    plan = service.rollouts.plan(RolloutRequest(hosts=(HostName("host-4"),), work=Work.FREEZE, by="test"))
    assert plan.warnings == ()


def test_a_plan_shows_when_each_stage_is_expected(service: Service) -> None:
    service.put("web-2", host=HostName("host-2"))
    plan = service.rollouts.plan(RolloutRequest(hosts=(HostName("host-2"),), work=Work.FREEZE, by="test"))
    minutes = [
        [(moment - START) / timedelta(minutes=1) for moment in (each.announce_at, each.start_at, each.end_at)]
        for each in plan.expected[0].stages
    ]
    assert minutes == [[0, 15, 20], [20, 35, 40]]


def test_later_waves_are_expected_after_the_current_one(service: Service) -> None:
    rollout = service.roll("host-1", "host-2", "host-4", gap=timedelta(hours=1))
    service.advance(minutes=10)

    def begins() -> list[float]:
        shown = service.rollouts.rollout(rollout.id, expected=True)
        return [(each.announce_at - START) / timedelta(minutes=1) for each in shown.expected]

    assert service.rollout(rollout).waves[0].ends_about == START + timedelta(minutes=20)
    assert begins() == [80, 160]
    service.advance(minutes=20)
    assert begins() == [80, 160]
    service.rollouts.pause(rollout.id, by="ops")
    assert begins() == []


def test_a_plan_warns_of_another_rollout_over_the_same_hosts(service: Service) -> None:
    for name in ("solo", "web-0", "web-1", "web-2"):
        service.poll(name)
    first = service.roll("host-1", "host-2", "host-3")
    service.advance(minutes=25)
    request = RolloutRequest(hosts=None, work=Work.FREEZE, by="test")
    warning = (
        f"host-2, host-3 are also in rollout {first.id}, which is running: "
        "each waits for the other's orders there"
    )
    assert service.rollouts.plan(request).warnings == (warning,)
    with pytest.raises(Conflict, match=f"host-2, host-3 are also in rollout {first.id}, which is running: "):
        service.rollouts.begin(request)
    assert service.rollouts.begin(replace(request, overlap=True)).warnings == (warning,)
    service.rollouts.abort(first.id, by="test")
    service.advance(hours=1)
    assert not any(first.id in warning for warning in service.rollouts.plan(request).warnings)


def test_unknown_hosts_and_empty_lists_are_refused(service: Service) -> None:
    with pytest.raises(NotFound, match='host "host-9" does not exist'):
        service.roll("host-1", "host-9")
    with pytest.raises(Invalid, match="expected at least one"):
        service.rollouts.begin(RolloutRequest(hosts=(), work=Work.FREEZE, by="test"))
    with pytest.raises(Invalid, match="expected freeze, reboot, redeploy or service"):
        service.roll("host-1", work=Work.EVICT)


# Obstacles


def test_a_host_with_another_order_waits_and_continues_when_that_order_is_over(service: Service) -> None:
    other = service.host_order("host-4", Action.MAINTENANCE, Work.REBOOT)
    rollout = service.roll("host-4")
    assert reasons_of(service, rollout) == [
        f"host-4: has order {other.order.id} (maintenance), which is announced"
    ]
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_held_fleet_announces_no_wave_until_it_is_released(service: Service) -> None:
    hold = service.fleet.hosts.hold(OrderRequest(by="ops", reason="audit"), project=None, host=None)
    rollout = service.roll("host-1")
    assert reasons_of(service, rollout) == ["the whole fleet: held by ops: audit"]
    service.fleet.hosts.release(hold.id, by="ops")
    service.tick()
    assert announced_machines(service) == ["web-0"]


@pytest.mark.parametrize("host", [None, "host-1"])
def test_a_hold_on_a_started_host_is_shown(service: Service, host: HostName | None) -> None:
    rollout = service.roll("host-1", "host-2")
    hold = service.fleet.hosts.hold(OrderRequest(by="ops", reason="audit"), project=None, host=host)
    service.tick()
    reach = "the whole fleet" if host is None else f"host {host}"
    waiting = service.rollouts.rollout(rollout.id).waiting
    assert list(map(str, waiting)) == [
        f"{reach}: held by ops: audit",
        "web: update domain 1 waits for domain 0",
        "host-2: wave 2 waits for wave 1",
    ]
    service.fleet.hosts.release(hold.id, by="ops")
    service.tick()
    assert not any("held" in wait.reason for wait in service.rollouts.rollout(rollout.id).waiting)


def test_a_hold_on_a_host_outside_the_rollout_is_not_shown(service: Service) -> None:
    rollout = service.roll("host-1")
    request = OrderRequest(by="ops", reason="audit")
    service.fleet.hosts.hold(request, project=None, host=HostName("host-2"))
    service.tick()
    assert service.rollouts.rollout(rollout.id).waiting == ()


def test_a_host_waits_while_a_group_has_too_few_healthy_machines(service: Service) -> None:
    service.apply(
        fleet(
            replace(group("db"), policy=GroupPolicy(budget=2)),
            *(machine(f"db-{n}", f"host-{n + 1}", group="db", domain=n) for n in range(2)),
            machine("db-2", "host-3", group="db", domain=0, priority=Priority.SPOT),
        )
    )
    service.order("db-2", Action.EVICT)
    service.advance(minutes=10)
    assert service.machine("db-2").state is MachineState.STOPPED
    rollout = service.roll("host-1")
    assert reasons_of(service, rollout) == ["db: needs 2 healthy, db-2 is down"]
    service.order("db-2", Action.START)
    assert announced_machines(service) == ["db-0"]


def test_a_running_machine_in_an_event_is_not_reported_as_down(service: Service) -> None:
    service.apply(
        fleet(
            replace(group("db"), policy=GroupPolicy(budget=2)),
            *(machine(f"db-{n}", f"host-{n + 1}", group="db", domain=0) for n in range(4)),
            machine("db-4", "host-4", group="db", domain=0, priority=Priority.SPOT),
            hosts=4,
        )
    )
    service.order("db-4", Action.EVICT)
    service.advance(minutes=10)
    for name in ("db-0", "db-1"):
        service.poll(name)
        service.order(name, Action.RESTART)
        assert service.machine(name).state is MachineState.RUNNING
    rollout = service.roll("host-3")
    assert reasons_of(service, rollout) == [
        "db: needs 2 healthy, db-4 is down, db-0 and db-1 are under an event"
    ]


def test_a_budget_that_can_never_be_met_is_refused(service: Service) -> None:
    service.apply(
        fleet(
            replace(group("db"), policy=GroupPolicy(budget=1)),
            *(machine(f"db-{n}", "host-1", group="db", domain=0) for n in range(2)),
        )
    )
    with pytest.raises(Invalid, match="db: needs 1 healthy of 2, but host-1 carries 2 of one update domain"):
        service.roll("host-1")


def test_a_host_that_its_group_can_no_longer_spare_pauses_the_rollout_with_the_next_step(
    service: Service,
) -> None:
    def declared(needs: int) -> FleetSpec:
        policy = GroupPolicy(budget=needs, notice=timedelta(hours=1))  # it is armed later
        return fleet(
            replace(group("db"), policy=policy),
            machine("db-0", "host-1", group="db", domain=0),
            *(machine(f"db-{n}", "host-2", group="db", domain=1) for n in (1, 2)),
        )

    service.apply(declared(1))
    rollout = service.roll("host-1", "host-2")
    service.apply(declared(2))
    service.advance(hours=2)
    now = service.rollout(rollout)
    assert (now.state, now.hosts_done) == (RolloutState.PAUSED, (HostName("host-1"),))
    assert now.why == (
        "db: needs 2 healthy of 3, but host-2 carries 2 of one update domain: "
        "redeploy some of them to other hosts, add machines to the group, or lower its budget"
    )
    service.apply(declared(1))
    service.rollouts.resume(rollout.id, by="test")
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_machines_that_move_before_their_wave_are_planned_again(service: Service) -> None:
    rollout = service.roll("host-4", "host-1", "host-3")
    service.put("web-1", host=HostName("host-3"))
    service.advance(hours=3)
    done = service.rollout(rollout)
    assert done.state is RolloutState.DONE
    begun = [name for _, name, _ in service.driver.begun]
    assert begun == ["solo", "web-0", "web-2", "web-1"]


# Failures


def test_a_failed_step_pauses_the_rollout_with_the_reason(service: Service) -> None:
    service.driver.failing.add("web-0")
    rollout = service.roll("host-1", "host-2")
    service.advance(minutes=15)
    paused = service.rollout(rollout)
    order = order_of(service, paused, "host-1")
    assert paused.state is RolloutState.PAUSED
    assert paused.why == f"host-1: order {order} failed (web-0 failed: told to fail): retry or abandon it"
    service.advance(hours=2)
    assert announced_machines(service) == []


def test_a_failed_order_must_be_settled_before_the_rollout_resumes(service: Service) -> None:
    service.driver.failing.add("web-0")
    rollout = service.roll("host-1", "host-2")
    service.advance(minutes=15)
    with pytest.raises(Conflict, match="retry or abandon it"):
        service.rollouts.resume(rollout.id, by="ops")
    service.driver.failing.clear()
    service.orders.retry_order(order_of(service, service.rollout(rollout), "host-1"), by="ops")  # type: ignore[arg-type]
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_host_with_an_abandoned_order_is_skipped(service: Service) -> None:
    service.driver.failing.add("web-0")
    rollout = service.roll("host-1", "host-2")
    service.advance(minutes=15)
    service.orders.abandon_order(order_of(service, service.rollout(rollout), "host-1"), by="ops")  # type: ignore[arg-type]
    service.tick()
    assert service.rollout(rollout).state is RolloutState.PAUSED
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    done = service.rollout(rollout)
    assert (done.state, done.abandoned) == (RolloutState.DONE, (HostName("host-1"),))


def test_a_rollout_skips_as_many_failed_hosts_as_it_may_lose(service: Service) -> None:
    service.driver.failing |= {"web-0", "web-2"}
    terms = RolloutTerms(max_failures=FailureLimit(amount=1))
    rollout = service.roll(hosts_at_once=1, terms=terms)
    service.advance(minutes=30)
    rollout = service.rollout(rollout)
    assert (rollout.state, rollout.abandoned) == ("running", ("host-1",))
    failed = service.views.order(OrderId(order_of(service, rollout, "host-1"))).order
    assert (failed.state, failed.open, failed.why) == (
        "failed",
        False,
        "abandoned by forewarn: failed: told to fail",
    )
    service.advance(hours=1)
    rollout = service.rollout(rollout)
    assert (rollout.state, rollout.abandoned) == ("paused", ("host-1",))
    assert rollout.why.startswith("host-3: order ")


def test_a_cancelled_order_pauses_the_rollout_and_its_host_is_announced_again(service: Service) -> None:
    rollout = service.roll("host-1")
    service.orders.cancel_order(order_of(service, rollout, "host-1"), by="ops")  # type: ignore[arg-type]
    service.tick()
    assert service.rollout(rollout).state is RolloutState.PAUSED
    service.rollouts.resume(rollout.id, by="ops")
    service.tick()
    assert announced_machines(service) == ["web-0"]


def test_a_failed_host_pauses_the_rollout_until_it_is_restored(service: Service) -> None:
    rollout = service.roll("host-1")
    service.host_order("host-1", Action.FAIL)
    assert "host host-1 failed" in service.rollout(rollout).why
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(minutes=10)
    assert reasons_of(service, rollout) == ["host-1: is failed: restore it first"]
    service.host_order("host-1", Action.RESTORE)
    service.tick()
    assert service.rollout(rollout).state is RolloutState.DONE


# Pause, resume, abort


def test_pausing_withdraws_announced_events_and_resuming_gives_full_notice(service: Service) -> None:
    rollout = service.roll(hosts_at_once=10)
    service.advance(minutes=10)
    paused = service.rollouts.pause(rollout.id, by="ops", reason="lunch").rollout
    assert (paused.state, paused.why) == (RolloutState.PAUSED, "by ops: lunch")
    assert announced_machines(service) == []
    service.advance(hours=1)
    assert announced_machines(service) == []
    service.rollouts.resume(rollout.id, by="ops")
    assert {event.not_before for event in service.everything().events.values()} == {
        START + timedelta(minutes=10 + 60 + 15)
    }
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_started_work_is_finished_while_paused(service: Service) -> None:
    service.poll("web-0")
    rollout = service.roll("host-1", "host-4", hosts_at_once=2)
    service.approve("web-0", *service.events("web-0"))
    paused = service.rollouts.pause(rollout.id, by="ops").rollout
    assert [list(wave.hosts) for wave in paused.waves] == [["host-1"], ["host-4"]]
    assert states(paused) == ["started", "planned"]
    service.advance(hours=1)
    assert states(service.rollout(rollout)) == ["done", "planned"]
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    done = service.rollout(rollout)
    assert done.state is RolloutState.DONE
    assert [list(wave.hosts) for wave in done.waves] == [["host-1"], ["host-4"]]


def test_the_second_of_two_operators_is_refused_with_the_change(service: Service) -> None:
    rollout = service.roll("host-1")
    service.rollouts.pause(rollout.id, by="ann", reason="lunch")
    with pytest.raises(Conflict, match="is paused already: by ann: lunch"):
        service.rollouts.pause(rollout.id, by="bob")
    service.rollouts.resume(rollout.id, by="ann")
    with pytest.raises(Conflict, match="nothing to resume, resumed by ann at 2026-01-05T12:00:00Z"):
        service.rollouts.resume(rollout.id, by="bob")


def two_stages(service: Service) -> Rollout:
    """Begin on a host with two domains of a group, and announce the second stage."""
    service.put("web-9", host=HostName("host-1"), group="web", update_domain=1)
    rollout = service.roll("host-1")
    service.advance(minutes=21)
    assert announced_machines(service) == ["web-9"]
    return rollout


def test_a_pause_withdraws_the_next_stage_of_a_host_too(service: Service) -> None:
    rollout = two_stages(service)
    service.rollouts.pause(rollout.id, by="ops", reason="lunch")
    service.advance(hours=2)
    assert announced_machines(service) == []
    assert service.rollout(rollout).state is RolloutState.PAUSED
    [order] = service.rollout(rollout).waves[0].orders
    assert service.views.order(order).order.waiting[0].reason == "paused: by ops: lunch"
    service.rollouts.resume(rollout.id, by="ops")
    service.tick()
    [event] = service.everything().events.values()
    assert event.not_before - service.clock.now() == timedelta(minutes=15)
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def scheduled(service: Service) -> int:
    return sum(record.kind == "event-scheduled" for record in service.history())


@pytest.mark.parametrize("paused", [True, False])
def test_an_abort_announces_nothing_even_after_a_pause(service: Service, paused: bool) -> None:
    rollout = two_stages(service)
    if paused:
        service.rollouts.pause(rollout.id, by="ops")
    known = scheduled(service)
    service.rollouts.abort(rollout.id, by="ops", reason="smoke")
    service.advance(hours=1)
    now = service.rollout(rollout)
    assert (now.state, now.abandoned) == (RolloutState.ABORTED, ("host-1",))
    assert (announced_machines(service), scheduled(service)) == ([], known)
    [order] = now.waves[0].orders
    cancelled = service.views.order(order).order
    assert (cancelled.state, cancelled.why) == (
        OrderState.CANCELLED,
        f"rollout {rollout.id} is aborted: by ops: smoke",
    )
    assert [step.state for step in cancelled.steps] == ["done", "moot"]


def declared_host(name: str) -> HostSpec:
    return HostSpec(name=HostName(name))


def test_empty_hosts_are_done_a_wave_in_each_tick(service: Service) -> None:
    empty = tuple(HostName(f"empty-{number}") for number in range(5))
    service.apply(replace(three_domains(), hosts=(*three_domains().hosts, *map(declared_host, empty))))
    names = [str(name) for name in empty]
    begun = service.rollouts.begin(RolloutRequest(hosts=empty, work=Work.FREEZE, by="test")).rollout
    assert len(begun.begun) == 1, names
    service.tick()
    assert service.rollout(begun).state is RolloutState.DONE


def test_a_waiting_rollout_is_not_woken_by_unrelated_changes(service: Service) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    rollout = service.roll("host-1")
    assert service.rollout(rollout).blocked
    service.orders.order_machine("solo", Action.FREEZE, OrderRequest(by="test"))
    assert service.rollout(rollout).due_at is None
    service.advance(minutes=40)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_decision_on_an_old_version_is_refused_with_the_change(service: Service) -> None:
    seen = service.roll("host-1", "host-2")
    service.rollouts.pause(seen.id, by="ann", version=seen.version)
    changed = r"changed since version 1: it is paused \(version 2\), paused by ann at 2026-01-05T12:00:00Z"
    with pytest.raises(Conflict, match=changed):
        service.rollouts.abort(seen.id, by="bob", version=seen.version)
    again = service.rollout(seen)
    service.rollouts.abort(seen.id, by="bob", version=again.version)
    with pytest.raises(Conflict, match="is aborted, aborted by bob at"):
        service.rollouts.resume(seen.id, by="ann", version=again.version)


# Health


def test_a_machine_that_is_not_healthy_in_time_pauses_the_rollout(service: Service) -> None:
    service.driver.slow = {"web-0"}
    rollout = service.roll("host-1", "host-2", terms=RolloutTerms(health=timedelta(minutes=20)))
    # The work begins after a quarter of an hour, and takes five minutes.
    service.advance(minutes=39)
    assert service.rollout(rollout).state is RolloutState.RUNNING
    service.advance(minutes=1)
    paused = service.rollout(rollout)
    assert paused.state is RolloutState.PAUSED
    assert paused.why == "web-0: is not healthy 20 m after its work should have been over"
    # A person may continue anyway; the wave ends with its work.
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(minutes=30)
    assert states(service.rollout(rollout)) == ["started", "planned"]
    service.driver.slow = set()
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


@pytest.mark.parametrize("expected", [None, timedelta(hours=1)])
def test_a_machine_may_have_less_time_to_be_healthy_than_its_work_takes(
    service: Service, expected: timedelta | None
) -> None:
    rollout = service.roll("host-1", terms=RolloutTerms(health=timedelta(minutes=1), expected=expected))
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE


def polling(service: Service, *names: str) -> Rollout:
    """Begin a rollout that requires new polls of machines that have polled before."""
    for name in names:
        service.poll(name)
    terms = RolloutTerms(health=timedelta(minutes=10), require_poll=True)
    return service.roll("host-1", "host-4", hosts_at_once=2, terms=terms)


def test_a_machine_that_polled_before_must_poll_again(service: Service) -> None:
    rollout = polling(service, "web-0")
    service.advance(minutes=20)
    assert states(service.rollout(rollout)) == ["checking"]
    service.advance(minutes=3)
    service.poll("web-0")
    service.advance(seconds=5)
    done = service.rollout(rollout)
    assert (done.state, done.ended_at) == (RolloutState.DONE, START + timedelta(minutes=23, seconds=5))


def test_a_machine_that_does_not_poll_again_pauses_the_rollout(service: Service) -> None:
    rollout = polling(service, "web-0")
    service.advance(minutes=30)
    paused = service.rollout(rollout)
    assert (paused.state, paused.why) == (
        RolloutState.PAUSED,
        "web-0: has not polled again 10 m after its work",
    )
    service.rollouts.resume(rollout.id, by="ops")
    service.tick()
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_poll_does_not_end_a_rollout_that_is_paused(service: Service) -> None:
    rollout = polling(service, "web-0")
    service.advance(minutes=30)
    service.poll("web-0")
    service.look_at(rollout)
    assert service.rollout(rollout).state is RolloutState.PAUSED
    service.rollouts.resume(rollout.id, by="ops")
    service.tick()
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_machine_that_never_polled_need_not_poll(service: Service) -> None:
    rollout = polling(service)
    service.advance(minutes=20)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_missing_poll_pauses_the_rollout_before_another_host_is_done(
    service: Service,
) -> None:
    service.poll("web-0")
    service.apply(
        replace(
            three_domains(), groups=(replace(group("web"), policy=GroupPolicy(notice=timedelta(hours=4))),)
        )
    )
    terms = RolloutTerms(health=timedelta(minutes=10), require_poll=True)
    rollout = service.roll("host-4", "host-1", hosts_at_once=2, terms=terms)
    service.poll("solo")
    # The standalone machine is done after twenty minutes, the other host begins after four hours.
    service.advance(minutes=30)
    paused = service.rollout(rollout)
    assert paused.why == "solo: has not polled again 10 m after its work"
    assert announced_machines(service) == []


def test_a_rollout_that_waits_for_polls_can_be_aborted(service: Service) -> None:
    rollout = polling(service, "web-0")
    service.advance(minutes=21)
    service.rollouts.abort(rollout.id, by="ops")
    service.tick()
    assert service.rollout(rollout).state is RolloutState.ABORTED


# Machines that are off


def seen(service: Service, name: str, *, running: bool) -> None:
    """Apply what an import has found of a machine."""
    before = service.machine(name)
    found = ObservedMachine(
        before=before, open_steps=(), host=before.host or before.last_host, running=running
    )
    checked = CheckedFleet(changes=(), parts=(FleetChange(seen=(found,)),), origin="imported from test")
    service.fleet.declarations.application(checked, by="test").apply_next(service.transact)
    service.tick()


def rolled(service: Service, **more: Any) -> Rollout:
    """Begin on two hosts, one after the other, whose machines have never polled."""
    return service.roll("host-1", "host-4", terms=RolloutTerms(health=timedelta(minutes=10)), **more)


def found_off(service: Service) -> Rollout:
    """Find the machine of one host off before the other host of its wave is done."""
    service.driver.slow = {"solo"}
    rollout = rolled(service, hosts_at_once=2)
    service.advance(minutes=20)
    seen(service, "web-0", running=False)
    service.driver.slow = set()
    service.advance(minutes=3)
    return rollout


def test_a_machine_that_is_off_after_its_work_pauses_the_rollout(service: Service) -> None:
    rollout = found_off(service)
    assert states(service.rollout(rollout)) == ["checking"]
    service.advance(minutes=7)
    paused = service.rollout(rollout)
    assert (paused.state, paused.why) == (
        RolloutState.PAUSED,
        "web-0: is off, as its hypervisor says, 10 m after its work",
    )
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_machine_that_is_started_in_time_causes_no_pause(service: Service) -> None:
    rollout = found_off(service)
    service.advance(minutes=5)
    assert states(service.rollout(rollout)) == ["checking"]
    seen(service, "web-0", running=True)
    service.advance(seconds=5)
    assert service.rollout(rollout).state is RolloutState.DONE


@pytest.mark.parametrize("restarted", [True, False])
def test_a_machine_found_off_while_the_next_wave_is_announced_pauses_the_rollout(
    service: Service, restarted: bool
) -> None:
    rollout = rolled(service)
    service.advance(minutes=22)
    assert states(service.rollout(rollout)) == ["done", "announced"]
    seen(service, "web-0", running=False)
    if restarted:
        service.restart()
    service.advance(minutes=9)
    paused = service.rollout(rollout)
    assert (paused.state, announced_machines(service)) == (RolloutState.PAUSED, [])
    assert paused.why.startswith("web-0: is off")


def test_no_wave_is_announced_in_a_gap_while_a_machine_is_off(service: Service) -> None:
    rollout = rolled(service, gap=timedelta(minutes=3))
    service.advance(minutes=22)
    seen(service, "web-0", running=False)
    assert reasons_of(service, rollout)[0] == "web-0: is off, as its hypervisor says, since its work"
    service.advance(minutes=5)
    assert states(service.rollout(rollout)) == ["done", "planned"]
    seen(service, "web-0", running=True)
    service.advance(seconds=5)
    assert states(service.rollout(rollout)) == ["done", "announced"]


def test_a_machine_stopped_by_forewarn_causes_no_pause(service: Service) -> None:
    service.put("web-0", priority=Priority.SPOT)
    rollout = rolled(service)
    service.advance(minutes=22)
    service.order("web-0", Action.EVICT)
    service.advance(minutes=3)
    assert service.machine("web-0").state is MachineState.STOPPED
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_external_programs_can_do_the_work_of_a_rollout(service: Service) -> None:
    terms = RolloutTerms(driver="external", heartbeat=timedelta(minutes=7))
    rollout = service.roll("host-1", "host-2", terms=terms)
    service.advance(minutes=16)
    service.orders.complete_order(OrderId(order_of(service, rollout, "host-1")), by="runbook")
    service.tick()
    service.advance(minutes=5)
    assert states(service.rollout(rollout)) == ["done", "announced"]
    service.advance(minutes=15)
    service.orders.heartbeat(OrderId(order_of(service, service.rollout(rollout), "host-2")))
    service.real += 420
    service.tick()
    assert "the external program has not reported for 7 m" in service.rollout(rollout).why


def test_the_notice_of_all_machines_is_summed(service: Service) -> None:
    service.poll("web-0")
    rollout = service.roll("host-1", "host-3", hosts_at_once=2)
    service.advance(minutes=2)
    service.fetch("web-0")
    assert service.rollout(rollout).waves[0].notice == NoticeSummary()
    service.advance(minutes=14)
    given = NoticeSummary(least=timedelta(minutes=13), late=0, never=1)
    [wave] = service.rollout(rollout).waves
    assert (wave.state, wave.notice) == (WaveState.STARTED, replace(given, so_far=True))
    service.advance(minutes=30)
    [wave] = service.rollout(rollout).waves
    assert (wave.state, wave.notice) == (WaveState.DONE, given)


def test_a_wave_keeps_the_times_of_its_announcement_and_start(service: Service) -> None:
    rollout = service.roll("host-1", "host-3")
    service.advance(minutes=16)
    first, second = service.rollout(rollout).waves
    assert (first.announced_at, first.started_at) == (START, START + timedelta(minutes=15))
    assert (second.announced_at, second.started_at) == (None, None)
    service.advance(minutes=4)
    first, second = service.rollout(rollout).waves
    assert (first.announced_at, first.started_at) == (START, START + timedelta(minutes=15))
    assert (second.announced_at, second.started_at) == (first.ended_at, None)


def test_the_last_record_of_a_rollout_names_no_earlier_author(service: Service) -> None:
    rollout = service.roll("host-1")
    service.rollouts.pause(rollout.id, by="ann")
    service.rollouts.resume(rollout.id, by="ann")
    service.advance(hours=1)
    with pytest.raises(Conflict, match=f"^rollout {rollout.id} is done$"):
        service.rollouts.abort(rollout.id, by="bob")


def test_a_wave_ended_by_a_pause_is_summed_at_once(service: Service) -> None:
    service.apply(replace(three_domains(), hosts=(*three_domains().hosts, declared_host("empty"))))
    rollout = service.roll("empty", "host-1", hosts_at_once=2)
    service.rollouts.pause(rollout.id, by="ops")
    before = service.rollout(rollout)
    assert (before.waves[0].hosts, before.waves[0].notice) == ((HostName("empty"),), NoticeSummary())
    service.look_at(rollout)
    assert service.rollout(rollout) == before


def test_a_second_stage_waits_for_the_budget_too(service: Service) -> None:
    web = replace(group("web"), policy=GroupPolicy(budget=3))
    members = (
        machine("a", "host-1", group="web", domain=0),
        machine("b", "host-1", group="web", domain=1),
        machine("c", "host-2", group="web", domain=1, priority=Priority.SPOT),
        machine("d", "host-2", group="web", domain=1),
    )
    service.apply(fleet(web, *members, hosts=4))
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=16)
    service.order("c", Action.EVICT)
    service.advance(minutes=10)
    assert [(wait.what, wait.reason) for wait in service.reload(placed).waiting] == [
        ("web", "needs 3 healthy, c is down")
    ]
    service.delete("c")
    service.put("e", host=HostName("host-2"), group="web", update_domain=1)
    service.advance(minutes=30)
    assert service.reload(placed).state is OrderState.DONE


# Where redeployed machines go


def crowd(*hosts: int, needs: int, count: int) -> FleetSpec:
    """A machine of update domain 0 of web on each of these hosts, beside empty hosts."""
    web = replace(group("web"), policy=GroupPolicy(budget=needs))
    members = (machine(f"m-{place}", f"host-{host}", group="web") for place, host in enumerate(hosts))
    return fleet(web, *members, hosts=count)


def hosts_of(service: Service) -> list[str]:
    return sorted(f"{each.host}" for each in service.everything().machines.values())


def test_redeploys_keep_a_group_apart_so_that_its_budget_can_be_met(service: Service) -> None:
    service.apply(crowd(1, 2, 3, needs=2, count=4))
    rollout = service.roll(work=Work.REDEPLOY, hosts_at_once=4)
    service.advance(hours=3)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert len(set(hosts_of(service))) == 3


def test_a_group_is_kept_apart_even_if_the_hosts_without_it_are_the_fullest(service: Service) -> None:
    """A machine of web on each of 45 hosts, and two others on each of the last five."""
    declared = crowd(*range(1, 46), needs=44, count=50)
    others = [machine(f"o-{place}", f"host-{46 + place % 5}") for place in range(10)]
    service.apply(replace(declared, machines=(*declared.machines, *others)))
    service.order("m-0", Action.REDEPLOY)
    service.advance(minutes=11)
    assert service.machine("m-0").host == "host-46"


def test_machines_of_a_wave_are_not_moved_onto_hosts_of_the_same_wave(service: Service) -> None:
    service.apply(crowd(1, 2, needs=0, count=4))
    service.roll("host-1", "host-2", work=Work.REDEPLOY, hosts_at_once=2)
    service.advance(hours=1)
    assert hosts_of(service) == ["host-3", "host-4"]
    assert len(service.driver.begun) == 2


def test_a_moving_machine_counts_on_its_target(service: Service) -> None:
    service.apply(crowd(1, 1, needs=0, count=4))
    service.driver.slow.update({"m-0", "m-1"})
    for name in ("m-0", "m-1"):
        service.order(name, Action.REDEPLOY)
    service.advance(minutes=11)
    assert [service.machine(name).bound_for for name in ("m-0", "m-1")] == ["host-2", "host-3"]
    service.driver.slow.clear()
    service.advance(minutes=11)
    assert hosts_of(service) == ["host-2", "host-3"]
    assert [service.machine(name).bound_for for name in ("m-0", "m-1")] == [None, None]


def test_a_rollout_that_must_crowd_a_host_pauses_with_the_next_step(service: Service) -> None:
    service.apply(crowd(1, 2, needs=1, count=2))
    rollout = service.roll(work=Work.REDEPLOY)
    service.advance(hours=1)
    paused = service.rollout(rollout)
    assert (paused.state, paused.why) == (
        RolloutState.PAUSED,
        "web: needs 1 healthy of 2, but host-2 carries 2 of one update domain: redeploy some of them to "
        "other hosts, add machines to the group, or lower its budget",
    )
    with pytest.raises(Conflict, match="cannot go on: web: needs 1 healthy of 2, but host-2 carries 2"):
        service.rollouts.resume(rollout.id, by="ops")
    service.order("m-0", Action.REDEPLOY)
    service.advance(minutes=15)
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_host_that_became_crowded_during_its_order_pauses_the_rollout(service: Service) -> None:
    web = replace(group("web"), policy=GroupPolicy(budget=2))
    members = [machine(f"m-{place}", "host-2", group="web", domain=place) for place in range(2)]
    service.apply(fleet(web, *members, machine("m-2", "host-1", group="web", domain=1), hosts=2))
    rollout = service.roll("host-2")
    service.advance(minutes=16)
    service.put("m-2", host=HostName("host-2"))
    service.advance(hours=1)
    assert "web: needs 2 healthy of 3, but host-2 carries 2" in service.rollout(rollout).why
    service.put("m-2", host=HostName("host-1"))
    service.rollouts.resume(rollout.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_aborting_cancels_announced_orders(service: Service) -> None:
    rollout = service.roll("host-1", "host-2")
    aborted = service.rollouts.abort(rollout.id, by="ops", reason="wrong kernel").rollout
    assert (aborted.state, aborted.why) == (RolloutState.ABORTED, "by ops: wrong kernel")
    assert announced_machines(service) == []
    with pytest.raises(Conflict, match="is aborted"):
        service.rollouts.resume(rollout.id, by="ops")


def test_an_abort_lets_started_work_finish(service: Service) -> None:
    rollout = service.roll("host-1", "host-2")
    service.advance(minutes=16)
    aborting = service.rollouts.abort(rollout.id, by="ops")
    assert aborting.rollout.state is RolloutState.RUNNING
    assert reasons_of(service, rollout) == ["host-1: started work is finished before the rollout is aborted"]
    with pytest.raises(Conflict, match="is being aborted"):
        service.rollouts.pause(rollout.id, by="ops")
    service.advance(hours=1)
    aborted = service.rollout(rollout)
    assert aborted.state is RolloutState.ABORTED
    assert service.views.order(aborted.waves[0].orders[0]).order.state is OrderState.DONE


# Properties


places = st.tuples(st.integers(1, 4), st.sampled_from(["web", "shop"]), st.integers(0, 2))


def healthy(service: Service, name: str) -> int:
    whole = service.everything()
    named = {resource.machine for event in whole.events.values() for resource in event.resources}
    return sum(
        each.group == name and each.state is MachineState.RUNNING and each.id not in named
        for each in whole.machines.values()
    )


@settings(max_examples=tries(5, long=100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    where=st.lists(places, min_size=2, max_size=10),
    needs=st.integers(0, 4),
    at_once=st.integers(1, 4),
    work=st.sampled_from([Work.FREEZE, Work.REBOOT, Work.REDEPLOY]),
)
def test_a_rollout_never_breaks_a_budget_or_disturbs_two_domains(
    where: list[tuple[int, str, int]], needs: int, at_once: int, work: Work
) -> None:
    members = [
        machine(f"m-{place}", f"host-{host}", group=owner, domain=domain)
        for place, (host, owner, domain) in enumerate(where)
    ]
    # A fleet that can spare no machine is refused before any rollout.
    needs = min(needs, max(0, sum(each.group == "web" for each in members) - 1))
    groups = [replace(group("web"), policy=GroupPolicy(budget=needs)), group("shop")]
    with tempfile.TemporaryDirectory() as folder, closing(Service(sqlite_url(Path(folder)))) as service:
        service.apply(fleet(*groups, *members, hosts=4))
        try:
            rollout = service.roll(work=work, hosts_at_once=at_once)
        except Invalid:
            return
        while service.rollout(rollout).open:
            service.advance(minutes=5)
            assert healthy(service, "web") >= needs
            listed = {(event.group, event.update_domain) for event in service.everything().events.values()}
            assert len(listed) == len({name for name, _ in listed})
            mine = service.rollout(rollout)
            if mine.state is RolloutState.PAUSED:
                # Only if the other three hosts have no more room for an update domain of one of them.
                assert work is Work.REDEPLOY
                assert "of one update domain: redeploy some of them" in mine.why
                domains = [each.update_domain for each in members if each.group == "web"]
                assert max(map(domains.count, domains)) > 3 * (len(domains) - needs)
                return
            assert service.clock.now() < START + timedelta(days=2)
        assert service.rollout(rollout).state is RolloutState.DONE


def test_planning_twice_changes_nothing(service: Service) -> None:
    rollout = service.roll(hosts_at_once=2)
    with writing(service.store) as tx:
        service.engine.rollouts.carry_on(tx, service.rollout(rollout), service.clock.now())
    assert service.rollout(rollout) == rollout


@pytest.mark.parametrize("minutes", [0, 5, 15, 16, 20, 21, 36])
def test_a_rollout_continues_after_a_restart_at_any_time(service: Service, minutes: int) -> None:
    rollout = service.roll(hosts_at_once=2)
    service.advance(minutes=minutes)
    service.restart()
    service.advance(hours=2)
    done = service.rollout(rollout)
    assert done.state is RolloutState.DONE
    assert sorted(name for _, name, _ in service.driver.begun) == ["solo", "web-0", "web-1", "web-2"]
    assert all(wave.state is WaveState.DONE for wave in done.waves)
    assert rules.reasons(done, now=service.clock.now()) == ()
