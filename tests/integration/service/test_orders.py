"""The life of orders: one test for each row of the tables in the design."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    EventStatus,
    EventType,
    GroupKind,
    HostName,
    HostState,
    MachineState,
    OrderState,
    Priority,
    ProjectName,
    Source,
    Work,
)
from forewarn.core.errors import Conflict, Invalid, LimitReached
from forewarn.core.model.project import Project
from forewarn.core.policy import Policy
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import START, Service, fleet, group, machine

WEB = (
    group("web"),
    machine("web-0", "host-1", group="web", domain=0),
    machine("web-1", "host-2", group="web", domain=1),
    machine("web-2", "host-3", group="web", domain=2),
    machine("db", "host-1"),
    machine("spot-0", "host-2", priority=Priority.SPOT),
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(*WEB))
    yield service
    service.close()


# Events of each call


@pytest.mark.parametrize(
    ("action", "name", "type_", "source", "notice", "duration", "stays"),
    [
        (Action.RESTART, "web-0", EventType.REBOOT, Source.USER, 900, -1, 90),
        (Action.REDEPLOY, "web-0", EventType.REDEPLOY, Source.USER, 600, -1, 300),
        (Action.FREEZE, "web-0", EventType.FREEZE, Source.PLATFORM, 900, 5, 300),
        (Action.EVICT, "spot-0", EventType.PREEMPT, Source.PLATFORM, 30, -1, 120),
        (Action.TERMINATE, "web-0", EventType.TERMINATE, Source.USER, 300, -1, 120),
    ],
)
def test_an_order_on_a_machine_creates_the_event_of_the_contract(
    service: Service,
    action: Action,
    name: str,
    type_: EventType,
    source: Source,
    notice: int,
    duration: int,
    stays: int,
) -> None:
    service.poll(name)
    service.poll("web-1")
    (event,) = service.order(name, action).events
    assert (event.type, event.source, event.duration_seconds) == (type_, source, duration)
    assert event.not_before == START + timedelta(seconds=notice)
    service.advance(seconds=notice - 1)
    watcher = name if name == "spot-0" else "web-1"
    assert [seen.status for seen in service.events(watcher)] == [EventStatus.SCHEDULED]
    service.advance(seconds=1)
    assert [seen.status for seen in service.events(watcher)] == [EventStatus.STARTED]
    service.advance(seconds=stays - 1)
    assert [seen.status for seen in service.events(watcher)] == [EventStatus.STARTED]
    service.advance(seconds=1)
    assert service.events(watcher) == []


@pytest.mark.parametrize(
    ("work", "type_", "notice", "duration"),
    [
        (Work.FREEZE, EventType.FREEZE, 900, 9),
        (Work.REBOOT, EventType.REBOOT, 900, -1),
        (Work.REDEPLOY, EventType.REDEPLOY, 600, -1),
    ],
)
def test_maintenance_announces_an_event_to_every_group_on_the_host(
    service: Service, work: Work, type_: EventType, notice: int, duration: int
) -> None:
    events = service.host_order("host-1", Action.MAINTENANCE, work).events
    assert {event.group for event in events} == {"web", service.machine("db").group}
    for event in events:
        assert (event.type, event.source, event.duration_seconds) == (type_, Source.PLATFORM, duration)
        assert event.not_before == START + timedelta(seconds=notice)


def test_a_degraded_host_gives_a_week_of_notice(service: Service) -> None:
    (db, web) = service.host_order("host-1", Action.DEGRADE).events
    assert web.type is EventType.REDEPLOY
    assert web.not_before == db.not_before == START + timedelta(days=7)
    service.advance(days=7)
    service.advance(minutes=5)
    assert service.events("web-0") == []
    assert service.machine("web-0").host != "host-1"


def test_events_of_a_failed_host_begin_as_started_and_its_machines_restart_elsewhere(
    service: Service,
) -> None:
    events = service.host_order("host-1", Action.FAIL).events
    assert {event.status for event in events} == {EventStatus.STARTED}
    assert {event.type for event in events} == {EventType.REBOOT}
    service.advance(minutes=5)
    assert service.events("web-0") == []
    whole = service.everything()
    assert whole.hosts[HostName("host-1")].state is HostState.FAILED
    assert not [each for each in whole.machines.values() if each.host == "host-1"]
    service.host_order("host-1", Action.RESTORE)
    assert service.everything().hosts[HostName("host-1")].state is HostState.OK


# Enabling


@pytest.mark.parametrize("action", [Action.RESTART, Action.REDEPLOY])
def test_a_user_order_creates_no_event_while_the_group_is_disabled(service: Service, action: Action) -> None:
    placed = service.order("web-0", action)
    assert placed.events == ()
    assert placed.order.state is OrderState.STARTED
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE
    assert not [record for record in service.history() if record.event]


def test_a_group_is_disabled_after_a_day_of_silence_and_at_most_twenty_minutes_late(service: Service) -> None:
    service.poll("web-0")
    service.advance(minutes=9)
    service.poll("web-1")
    last = service.clock.now()
    service.advance(hours=24)
    assert service.everything().groups[service.machine("web-0").group].enabled
    service.advance(minutes=20)
    assert not service.everything().groups[service.machine("web-0").group].enabled
    (record,) = [each for each in service.history() if each.kind == "group-disabled"]
    assert timedelta(hours=24) < record.at - last <= timedelta(hours=24, minutes=20)


def test_polls_lost_in_a_crash_never_disable_a_group_early(service: Service) -> None:
    service.poll("web-0")
    service.advance(minutes=9)
    service.poll("web-1")
    service.restart()
    service.advance(hours=24)
    assert service.everything().groups[service.machine("web-0").group].enabled


# Starting


def test_an_unapproved_event_waits_for_its_not_before(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    service.advance(minutes=14, seconds=59)
    assert service.reload(placed).state is OrderState.ANNOUNCED
    service.advance(seconds=1)
    assert service.reload(placed).state is OrderState.STARTED


def test_an_approval_by_any_machine_of_the_group_starts_it_at_once(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    service.approve("web-2", *placed.events)
    (event,) = service.events("web-0")
    assert event.status is EventStatus.STARTED
    assert [(word.by, word.kind) for word in event.approvals] == [("web-2", "guest")]


def test_a_stage_waits_for_all_its_events(service: Service) -> None:
    db, web = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.approve("web-1", web)
    assert {event.status for event in (*service.events("web-0"), *service.events("db"))} == {
        EventStatus.SCHEDULED
    }
    service.approve("db", db)
    assert {event.status for event in (*service.events("web-0"), *service.events("db"))} == {
        EventStatus.STARTED
    }


def test_a_started_event_stays_listed_for_ninety_seconds(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(*WEB))
    service.host_order("host-1", Action.FAIL)
    service.advance(seconds=89)
    assert service.events("web-0")
    service.close()


def test_an_incarnation_changes_only_with_what_guests_can_see(service: Service) -> None:
    service.poll("web-0")
    assert service.incarnation("web-0") == 1
    db, web = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    assert service.incarnation("web-0") == 2
    service.approve("web-1", web)
    assert service.incarnation("web-0") == 2
    service.approve("db", db)
    assert service.incarnation("web-0") == 3
    service.advance(minutes=5)
    assert service.incarnation("web-0") == 4


# One update domain after another


def test_a_host_with_two_update_domains_of_a_group_takes_two_stages(service: Service) -> None:
    service.put("web-9", host=HostName("host-1"), group="web", update_domain=2)
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    assert [[step.name for step in stage.steps] for stage in placed.order.stages] == [
        ["db", "web-0"],
        ["web-9"],
    ]
    assert {event.update_domain for event in service.events("web-0")} == {0}
    service.advance(minutes=20)
    assert [(event.update_domain, event.status) for event in service.events("web-0")] == [
        (2, EventStatus.SCHEDULED)
    ]
    service.advance(minutes=20)
    assert service.reload(placed).state is OrderState.DONE


def test_maintenance_waits_with_its_reason_while_another_domain_has_an_event(service: Service) -> None:
    first = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    second = service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    assert second.events == ()
    assert second.order.state is OrderState.QUEUED
    (reason,) = second.order.waiting
    assert (reason.what, reason.reason) == ("web", "update domain 1 waits for domain 0")
    service.advance(minutes=20)
    assert service.reload(first).state is OrderState.DONE
    assert service.reload(second).state is OrderState.ANNOUNCED


def test_a_users_own_order_does_not_wait_for_another_domain(service: Service) -> None:
    service.poll("web-0")
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    assert service.order("web-1", Action.RESTART).events


# While an event is open


def test_a_machine_created_on_an_announced_host_gets_its_own_event_and_the_stage_waits(
    service: Service,
) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=10)
    service.put("late", host=HostName("host-1"))
    (event,) = service.events("late")
    assert event.not_before == service.clock.now() + timedelta(minutes=15)
    service.advance(minutes=14, seconds=59)
    assert service.reload(placed).state is OrderState.ANNOUNCED
    service.advance(seconds=1)
    assert service.reload(placed).state is OrderState.STARTED


def test_a_removed_machine_leaves_its_event_and_the_last_one_closes_it(service: Service) -> None:
    service.put("web-3", host=HostName("host-1"), group="web", update_domain=0)
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.delete("web-3")
    assert [named.name for named in service.events("web-0")[0].resources] == ["web-0"]
    service.delete("web-0")
    assert service.events("web-1") == []
    service.delete("db")
    assert service.reload(placed).state is OrderState.DONE


def test_a_machine_moved_outside_forewarn_leaves_the_event_with_a_record(service: Service) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.put("web-0", host=HostName("host-3"))
    assert service.events("web-0") == []
    last = [record for record in service.history() if record.kind == "event-cancelled"][-1]
    assert last.reason == "moved to host-3 by test"


def test_a_machine_named_in_an_event_is_neither_renamed_nor_regrouped(service: Service) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    for change in ({"name": "other"}, {"group": None, "update_domain": 0}, {"update_domain": 1}):
        with pytest.raises(Conflict, match="until the event is over"):
            service.put("web-0", **change)


@pytest.mark.parametrize(
    ("action", "type_"), [(Action.EVICT, EventType.PREEMPT), (Action.TERMINATE, EventType.TERMINATE)]
)
def test_an_evicted_machine_leaves_scheduled_events(
    service: Service, action: Action, type_: EventType
) -> None:
    maintenance = service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    service.poll("spot-0")
    restart = service.order("spot-0", Action.RESTART)
    service.order("spot-0", action)
    assert [event.type for event in service.events("spot-0")] == [type_]
    assert service.reload(restart).state is OrderState.CANCELLED
    assert service.reload(maintenance).state is OrderState.ANNOUNCED


def test_a_machine_whose_removal_is_cancelled_gets_the_event_of_its_host(service: Service) -> None:
    service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    eviction = service.order("spot-0", Action.EVICT)
    service.orders.cancel_order(eviction.order.id, by="test")
    service.tick()
    (event,) = service.events("spot-0")
    assert event.type is EventType.FREEZE
    assert event.not_before == service.clock.now() + timedelta(minutes=15)


def test_a_failing_host_closes_scheduled_events_and_supersedes_its_orders(service: Service) -> None:
    maintenance = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    failure = service.host_order("host-1", Action.FAIL)
    assert [event.status for event in service.events("web-0")] == [EventStatus.STARTED]
    old = service.views.event(maintenance.events[0].id).event
    assert old.why == f"host host-1 failed (order {failure.order.id})"
    assert service.reload(maintenance).state is OrderState.CANCELLED


def test_a_second_order_is_refused_and_names_the_first(service: Service) -> None:
    service.poll("web-0")
    first = service.order("web-0", Action.RESTART)
    with pytest.raises(Conflict, match=first.order.id):
        service.order("web-0", Action.REDEPLOY)
    first = service.host_order("host-2", Action.DEGRADE)
    with pytest.raises(Conflict, match=first.order.id):
        service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)


def test_a_cancelled_event_cancels_its_whole_order(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.orders.cancel_event(placed.events[0].id, by="test")
    assert service.events("web-0") == service.events("db") == []
    assert service.reload(placed).state is OrderState.CANCELLED


def test_a_started_event_is_too_late_to_cancel(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=15)
    with pytest.raises(Conflict, match="is Started, too late to cancel"):
        service.orders.cancel_event(placed.events[0].id, by="test")
    with pytest.raises(Conflict, match="too late to cancel"):
        service.orders.cancel_order(placed.order.id, by="test")


# After the end


def test_a_redeployed_machine_moves_to_the_emptiest_sound_host(service: Service) -> None:
    service.host_order("host-3", Action.CORDON)
    service.order("db", Action.REDEPLOY)
    service.advance(minutes=5)
    assert service.machine("db").host == "host-2"


def test_an_evicted_machine_stays_stopped_until_it_is_started(service: Service) -> None:
    service.order("spot-0", Action.EVICT)
    service.advance(minutes=5)
    assert service.machine("spot-0").state is MachineState.STOPPED
    assert service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE).events
    assert service.events("spot-0") == []
    with pytest.raises(Conflict, match="is stopped: start it first"):
        service.order("spot-0", Action.RESTART)
    placed = service.order("spot-0", Action.START)
    assert placed.events == ()
    assert service.machine("spot-0").state is MachineState.RUNNING
    assert service.machine("spot-0").host is not None


def test_only_spot_machines_are_evicted(service: Service) -> None:
    with pytest.raises(Conflict, match="only spot machines are evicted"):
        service.order("web-0", Action.EVICT)


def test_a_terminated_machine_leaves_the_fleet_with_its_event(service: Service) -> None:
    service.order("db", Action.TERMINATE)
    service.advance(minutes=6, seconds=59)
    assert service.events("db")
    service.advance(seconds=1)
    assert "db" not in {each.name for each in service.everything().machines.values()}


# Failure, staleness, limits


def test_a_failed_step_waits_for_a_person_who_retries(service: Service) -> None:
    service.driver.failing = {"web-0"}
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(hours=2)
    order = service.reload(placed)
    assert order.state is OrderState.FAILED
    assert [(each.what, each.reason) for each in order.waiting] == [("web-0", "failed: told to fail")]
    assert [event.status for event in service.events("web-0")] == [EventStatus.STARTED]
    service.driver.failing = set()
    service.orders.retry_order(order.id, by="test")
    service.tick()
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE
    assert service.events("web-0") == []
    assert [begun for begun in service.driver.begun if begun[1] == "db"] == [(order.id, "db", 1)]


def test_an_abandoned_order_is_over_and_its_events_have_ended(service: Service) -> None:
    service.driver.failing = {"web-0"}
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=15)
    service.orders.abandon_order(placed.order.id, by="test")
    service.advance(minutes=5)
    order = service.reload(placed)
    assert (order.state, order.open) == (OrderState.FAILED, False)
    assert service.events("web-0") == []
    with pytest.raises(Conflict, match="and over"):
        service.orders.retry_order(order.id, by="test")


def test_a_move_without_a_target_fails_and_names_the_next_step(service: Service) -> None:
    for host in ("host-2", "host-3"):
        service.host_order(host, Action.CORDON)
    placed = service.order("db", Action.REDEPLOY)
    assert "add or uncordon one, then retry" in service.reload(placed).waiting[0].reason
    service.host_order("host-3", Action.UNCORDON)
    service.orders.retry_order(placed.order.id, by="test")
    service.tick()
    service.advance(minutes=5)
    assert service.machine("db").host == "host-3"


def test_an_event_that_an_outage_made_stale_is_announced_again_with_full_notice(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    later = START + timedelta(hours=2)
    service.engine.save_time(later)
    service.restart()
    (event,) = service.events("web-0")
    assert event.id != placed.events[0].id
    assert (event.status, event.not_before) == (EventStatus.SCHEDULED, later + timedelta(minutes=15))


def test_a_start_less_than_half_an_hour_late_needs_no_new_notice(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    service.engine.save_time(START + timedelta(minutes=44))
    service.restart()
    assert [event.id for event in service.events("web-0")] == [placed.events[0].id]
    assert service.reload(placed).state is OrderState.STARTED


def test_the_limit_on_user_orders_is_enforced_with_a_message(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path), policy=Policy(user_orders=1))
    service.apply(fleet(*WEB))
    service.poll("web-0")
    service.order("web-0", Action.RESTART)
    with pytest.raises(LimitReached, match="its limit"):
        service.order("web-1", Action.RESTART)
    service.advance(minutes=15)
    assert service.order("web-1", Action.RESTART).events
    service.close()


def test_a_jump_of_the_clock_holds_unapproved_starts_for_as_long(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    jump = timedelta(minutes=14)
    service.clock.set(START + jump)
    service.engine.grant_grace(jump, service.clock.now())
    service.advance(minutes=13, seconds=59)
    assert service.reload(placed).state is OrderState.ANNOUNCED
    service.advance(seconds=1)
    assert service.reload(placed).state is OrderState.STARTED


def test_an_unknown_id_refuses_the_whole_approval(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    with pytest.raises(Invalid):
        service.approve("web-0", placed.events[0], "602D9444-D2CD-49C7-8624-8643E7171297")  # type: ignore[arg-type]
    assert not service.events("web-0")[0].approved


def test_an_event_of_another_group_is_unknown_to_a_guest(service: Service) -> None:
    service.poll("web-0")
    service.poll("db")
    placed = service.order("web-0", Action.RESTART)
    (event,) = placed.events
    caller = service.machine("db").id
    for attempt in (
        lambda: service.approve("db", event),
        lambda: service.fleet.guests.defer(caller, {event.id: 60}),
    ):
        with pytest.raises(Invalid, match=f"^event {event.id} is not known$"):
            attempt()
    assert service.events("web-0") == [event]


def test_an_event_that_is_over_can_be_approved_late_without_effect(service: Service) -> None:
    service.poll("web-0")
    placed = service.order("web-0", Action.RESTART)
    service.advance(hours=1)
    service.approve("web-0", *placed.events)
    assert service.reload(placed).state is OrderState.DONE


def test_a_day_on_the_manual_clock_is_reproducible(tmp_path: Path) -> None:
    def history(folder: Path) -> list[object]:
        folder.mkdir()
        service = Service(sqlite_url(folder))
        service.apply(fleet(*WEB))
        service.poll("web-0")
        service.host_order("host-1", Action.MAINTENANCE, Work.REDEPLOY)
        service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
        service.order("spot-0", Action.EVICT)
        service.advance(hours=24)
        records = list(service.history())
        service.close()
        return records

    assert history(tmp_path / "a") == history(tmp_path / "b")


def test_the_history_of_a_machine_includes_events_with_several_machines(service: Service) -> None:
    service.put("web-3", host=HostName("host-1"), group="web", update_domain=0)
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=20)
    kinds = [record.kind for record in service.history(machine="web-3")]
    assert kinds == [
        "machine-added",
        "event-scheduled",
        "event-started",
        "step-begun",
        "step-done",
        "event-finished",
        "notice-never",
    ]


# Removed machines, and failed orders


def test_a_finished_machine_is_still_named_in_its_event(service: Service) -> None:
    service.put("web-3", host=HostName("host-1"), group="web", update_domain=0)
    service.driver.failing = {"web-3"}
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.REDEPLOY)
    service.advance(minutes=20)
    assert service.machine("web-0").host != "host-1"
    with pytest.raises(Conflict, match="until the event is over"):
        service.put("web-0", name="other")
    service.delete("web-0")
    assert [named.name for named in service.events("web-1")[0].resources] == ["web-3"]
    assert service.reload(placed).state is OrderState.FAILED


def test_a_machine_deleted_while_its_event_is_listed_blocks_nothing(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path), policy=Policy(linger=timedelta(minutes=10)))
    service.apply(fleet(*WEB))
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.REDEPLOY)
    service.advance(minutes=16)
    service.delete("db")
    service.advance(hours=1)
    assert service.reload(placed).state is OrderState.DONE
    service.close()


def test_a_retried_external_step_waits_for_a_report(service: Service) -> None:
    service.driver.failing = {"web-0"}
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.REBOOT)
    service.advance(minutes=20)
    service.driver.failing = set()
    restart = service.order("web-0", Action.RESTART)
    service.orders.retry_order(placed.order.id, by="test")
    service.tick()
    assert restart.order.id in service.reload(placed).waiting[0].reason
    service.advance(minutes=10)
    assert service.reload(placed).state is OrderState.DONE


def test_an_eviction_completes_a_failed_host_order_and_the_machine_stays_stopped(service: Service) -> None:
    service.driver.failing = {"spot-0"}
    placed = service.host_order("host-2", Action.MAINTENANCE, Work.REBOOT)
    service.advance(minutes=20)
    service.driver.failing = set()
    service.order("spot-0", Action.EVICT)
    service.advance(minutes=5)
    assert service.machine("spot-0").state is MachineState.STOPPED
    assert service.reload(placed).state is OrderState.DONE


def test_a_machine_that_an_operator_recovers_manually_is_running(service: Service) -> None:
    for host in ("host-2", "host-3"):
        service.host_order(host, Action.CORDON)
    placed = service.host_order("host-1", Action.FAIL)
    assert service.machine("db").state is MachineState.RESTARTING
    with pytest.raises(Conflict, match="is recovered first"):
        service.order("db", Action.RESTART)
    for name in ("db", "web-0"):
        service.put(name, host=HostName("host-2"))
        assert service.machine(name).state is MachineState.RUNNING
    assert service.reload(placed).state is OrderState.DONE


def test_a_restored_host_takes_its_machines_back(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(machine("only", "host-1"), hosts=1))
    placed = service.host_order("host-1", Action.FAIL)
    service.host_order("host-1", Action.RESTORE)
    service.orders.retry_order(placed.order.id, by="test")
    service.tick()
    service.advance(minutes=5)
    assert (service.machine("only").host, service.machine("only").state) == ("host-1", MachineState.RUNNING)
    service.close()


def test_a_stopped_machine_stays_stopped_when_its_termination_fails(service: Service) -> None:
    service.order("spot-0", Action.EVICT)
    service.advance(minutes=5)
    service.driver.failing = {"spot-0"}
    placed = service.order("spot-0", Action.TERMINATE)
    service.advance(minutes=6)
    service.orders.abandon_order(placed.order.id, by="test")
    assert (service.machine("spot-0").state, service.machine("spot-0").host) == (MachineState.STOPPED, None)


def test_a_started_termination_survives_the_failure_of_its_host(service: Service) -> None:
    service.order("db", Action.TERMINATE)
    service.advance(minutes=5, seconds=1)
    service.host_order("host-1", Action.FAIL)
    service.advance(minutes=10)
    assert "db" not in {each.name for each in service.everything().machines.values()}


def test_a_machine_without_a_group_has_its_own_document(service: Service) -> None:
    before = service.everything().groups[service.machine("db").group]
    service.put("db", group="web", update_domain=0)
    service.put("db", group=None, update_domain=0)
    after = service.everything().groups[service.machine("db").group]
    assert before.name == after.name
    assert before.born != after.born


def test_a_group_keeps_its_kind_and_project_while_events_are_listed(service: Service) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    changed = (group("web", kind=GroupKind.CLOUD_SERVICE), *WEB[1:])
    with pytest.raises(Conflict, match="until they are over"):
        service.apply(fleet(*changed))


def test_a_group_that_moves_to_another_project_keeps_its_machines(service: Service) -> None:
    before = service.machine("web-0").id
    project = ProjectName("team")
    moved = [
        replace(part, project=project) if getattr(part, "group", part.name) == "web" else part for part in WEB
    ]
    service.apply(replace(fleet(*moved), projects=(Project(name=DEFAULT_PROJECT), Project(name=project))))
    after = service.machine("web-0")
    assert (after.id, after.project) == (before, "team")


def test_a_machine_cannot_be_added_to_an_undeclared_project(service: Service) -> None:
    with pytest.raises(Invalid, match="project: expected one of the projects"):
        service.put("new", host=HostName("host-1"), project=ProjectName("nope"))


def test_a_second_jump_of_the_clock_adds_to_the_first(service: Service) -> None:
    service.engine.grant_grace(timedelta(minutes=20), START)
    service.engine.grant_grace(timedelta(minutes=2), START + timedelta(minutes=1))
    grace = service.everything().grace
    assert grace is not None
    assert grace.until == START + timedelta(minutes=22)


def test_a_queued_order_is_retried_when_its_reason_disappears(service: Service) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    second = service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    service.put("web-1", update_domain=0)
    assert service.reload(second).state is OrderState.ANNOUNCED


def test_a_time_that_would_loop_the_engine_is_refused() -> None:
    with pytest.raises(Invalid, match="stale-after: expected a time greater than zero"):
        Policy(stale_after=timedelta())


def test_abandoning_and_cordoning_each_add_one_record(service: Service) -> None:
    service.driver.failing = {"db"}
    placed = service.order("db", Action.REDEPLOY)
    service.orders.abandon_order(placed.order.id, by="test")
    cordon = service.host_order("host-1", Action.CORDON)
    kinds = [record.kind for record in service.history(order=placed.order.id)]
    assert kinds == ["order-placed", "step-begun", "step-failed", "order-failed", "order-abandoned"]
    assert [record.kind for record in service.history(order=cordon.order.id)] == [
        "order-placed",
        "order-done",
    ]
