"""Requests of operators and groups beyond the contract: holds, emergencies, policies, external work."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.idempotent_calls import IdempotentCall, IdempotentResponse
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    ApprovalRule,
    EventStatus,
    HostName,
    Kind,
    OrderState,
    ProjectName,
    Work,
)
from forewarn.core.errors import Conflict, Unavailable, Uncertain
from forewarn.core.model.clock_slew import TimeKind
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.lost_answers import lost_commit
from tests.helpers.service.harness import START, TEST, Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of


def web(policy: GroupPolicy | None = None) -> FleetSpec:
    """Two machines of one update domain on host-1, and one of another on host-2."""
    return fleet(
        replace(group("web"), policy=policy or GroupPolicy()),
        machine("web-0", "host-1", group="web", domain=0),
        machine("web-1", "host-1", group="web", domain=0),
        machine("web-2", "host-2", group="web", domain=1),
    )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(web())
    service.poll("web-0")
    yield service
    service.close()


# Holds


def test_nothing_is_announced_while_the_fleet_is_held(service: Service) -> None:
    hold = service.fleet.hosts.hold(OrderRequest(by="ops", reason="freeze week"), project=None, host=None)
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    assert placed.order.state is OrderState.QUEUED
    (reason,) = placed.order.waiting
    assert (reason.what, reason.reason) == ("the whole fleet", "held by ops: freeze week")
    service.fleet.hosts.release(hold.id, by="ops")
    service.tick()
    assert service.reload(placed).state is OrderState.ANNOUNCED


def test_an_approved_event_does_not_start_while_its_host_is_held(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    hold = service.fleet.hosts.hold(TEST, project=None, host=HostName("host-1"))
    service.approve("web-2", *placed.events)
    assert [event.status for event in service.events("web-0")] == [EventStatus.SCHEDULED]
    service.fleet.hosts.release(hold.id, by="ops")
    service.tick()
    assert [event.status for event in service.events("web-0")] == [EventStatus.STARTED]


def test_an_event_that_a_hold_made_stale_is_announced_again_after_the_release(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    hold = service.fleet.hosts.hold(TEST, project=None, host=None)
    service.advance(hours=2)
    assert service.events("web-0") == []
    service.fleet.hosts.release(hold.id, by="ops")
    service.tick()
    (event,) = service.events("web-0")
    assert event.id != placed.events[0].id
    assert event.not_before == service.clock.now() + timedelta(minutes=15)


@pytest.mark.parametrize("saved", [True, False])
def test_a_refused_hold_in_memory_stays_refused_after_an_uncertain_commit(
    service: Service, saved: bool
) -> None:
    unsaved = service.use_cases.unsaved_holds
    call = IdempotentCall(caller="ops", key="key", method="POST", path="/v1/holds", body=b"{}")
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("nowhere"), call=call)
    unsaved.set_response(hold, IdempotentResponse(status=201, body=b"{}"))
    with lost_commit(saved=saved), pytest.raises(Uncertain):
        unsaved.save()
    unsaved.save()
    assert [each.hold.id for each in unsaved.refused] == [hold.id]
    assert service.answering.find(call) is None
    about_holds = [record.kind for record in service.history() if record.kind.startswith("hold-")]
    assert len(about_holds) == 1


def test_a_hold_in_memory_is_recorded_once_after_an_uncertain_commit(service: Service) -> None:
    """It was set and released during an outage of the database, and the answer to its commit was lost."""
    unsaved = service.use_cases.unsaved_holds
    id_ = unsaved.new_id()
    for _ in range(2):
        hold = unsaved.put(TEST, id_=id_, project=None, host=None)
        unsaved.release(hold.id, by="ops")
        unsaved.save()
    about_holds = [record.kind for record in service.history() if record.kind.startswith("hold-")]
    assert about_holds == [Kind.HOLD_SET, Kind.HOLD_RELEASED]


def test_a_refused_hold_in_memory_is_recorded_and_listed_until_its_release(
    service: Service,
) -> None:
    unsaved, api = service.use_cases.unsaved_holds, Api(app_of(service))
    wrong = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-9"))
    right = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-1"))
    unsaved.save()
    (record,) = [each for each in service.history() if each.kind == Kind.HOLD_REFUSED]
    assert (record.by, record.host) == ("test", "host-9")
    assert 'it was dropped: host "host-9" does not exist' in record.reason
    kept, refused = api("GET", "/v1/holds").json()["holds"]
    assert (kept["id"], kept["refused"], refused["id"]) == (right.id, None, wrong.id)
    assert 'host "host-9" does not exist' in refused["refused"]
    assert "forewarn_refused_holds_total 1.0" in api("GET", "/metrics").text
    assert api("POST", f"/v1/holds/{wrong.id}/release").status_code == 200
    assert [each["id"] for each in api("GET", "/v1/holds").json()["holds"]] == [right.id]
    assert api("POST", f"/v1/holds/{wrong.id}/release").status_code == 404


def test_a_call_whose_hold_was_refused_has_no_saved_response(service: Service) -> None:
    unsaved = service.use_cases.unsaved_holds
    call = IdempotentCall(caller="test", key="k", method="POST", path="/v1/holds", body=b"{}")
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-9"), call=call)
    unsaved.set_response(hold, IdempotentResponse(status=201, body=b"held"))
    unsaved.save()
    assert not service.answering.answer(call, lambda: IdempotentResponse(status=404, body=b"")).again


def test_a_hold_in_memory_released_before_its_refusal_is_not_listed(service: Service) -> None:
    unsaved = service.use_cases.unsaved_holds
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=ProjectName("none"), host=None)
    unsaved.release(hold.id, by="ops")
    unsaved.save()
    assert (unsaved.refused, unsaved.in_force) == ((), [])


def test_a_hold_is_in_memory_or_known_at_each_moment_while_it_is_saved(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsaved = service.use_cases.unsaved_holds
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=None)
    read, found = Store.read, list[set[str]]()

    def look(self: Store) -> AbstractContextManager[Snapshot]:
        found.append({each.id for each in (*unsaved.in_force, *unsaved.known)})
        return read(self)

    monkeypatch.setattr(Store, "read", look)
    unsaved.save()
    assert all(ids == {hold.id} for ids in found)
    assert (unsaved.in_force, unsaved.known) == ([], [hold])


def test_a_failed_read_of_holds_is_repeated(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: bool) -> None:
        raise Unavailable("the database does not answer")

    unsaved = service.use_cases.unsaved_holds
    held = service.fleet.hosts.hold(TEST, project=None, host=None)
    with monkeypatch.context() as patched:
        patched.setattr(service.store.deadlines, "check", refuse)
        with pytest.raises(Unavailable, match="the database does not answer"):
            unsaved.save()
    unsaved.save()
    assert unsaved.known == [held]


def test_a_hold_affects_only_its_scope(service: Service) -> None:
    service.fleet.hosts.hold(TEST, project=None, host=HostName("host-2"))
    assert service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.fleet.hosts.hold(TEST, project=ProjectName("default"), host=None)
    assert service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE).events == ()


def test_a_failed_host_ignores_holds(service: Service) -> None:
    service.fleet.hosts.hold(TEST, project=None, host=None)
    assert service.host_order("host-1", Action.FAIL).events


def test_a_second_hold_on_the_same_thing_names_the_first(service: Service) -> None:
    first = service.fleet.hosts.hold(TEST, project=None, host=None)
    with pytest.raises(Conflict, match=first.id):
        service.fleet.hosts.hold(TEST, project=None, host=None)


# Emergencies, and owners who skip the notice


def test_an_emergency_shortens_the_notice_and_is_recorded_as_a_broken_promise(service: Service) -> None:
    terms = OrderTerms(emergency="coolant leak", notice=timedelta(minutes=2))
    request = OrderRequest(by="ops", terms=terms)
    (event,) = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REBOOT).events
    assert event.not_before == START + timedelta(minutes=2)
    (broken,) = [record for record in service.history() if record.kind == "promise-broken"]
    assert broken.reason == "coolant leak: 2 m of notice instead of 15 m"


def test_the_owner_of_a_machine_can_restart_it_without_notice(service: Service) -> None:
    request = OrderRequest(by="owner", terms=OrderTerms(at_once=True))
    (event,) = service.orders.order_machine("web-0", Action.RESTART, request).events
    assert event.status is EventStatus.STARTED
    assert [(word.by, word.kind) for word in event.approvals] == [("owner", "person")]


# Policies


def test_if_all_must_approve_one_approval_is_not_enough(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.ALL)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.approve("web-0", told)
    service.approve("web-2", told)
    (event,) = service.events("web-0")
    assert (event.status, event.awaited) == (EventStatus.SCHEDULED, ("web-1",))
    service.approve("web-1", told)
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_if_the_leader_approves_no_other_machine_can(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.LEADER)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.approve("web-1", told)
    assert service.events("web-0")[0].awaited == ("web-0",)
    service.approve("web-0", told)
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_the_approval_of_a_person_is_enough_for_every_policy(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.ALL)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    assert service.orders.approve_event(told.id, by="owner").status is EventStatus.STARTED


def test_auto_approval_applies_to_user_orders_only(service: Service) -> None:
    service.apply(web(GroupPolicy(auto_approve=True)))
    (mine,) = service.order("web-0", Action.RESTART).events
    assert (mine.status, mine.approvals[0].kind) == (EventStatus.STARTED, "policy")
    assert (
        service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events[0].status
        is EventStatus.SCHEDULED
    )


def test_a_group_with_longer_notice_delays_all_events_of_its_host(service: Service) -> None:
    spec = web(GroupPolicy(notice=timedelta(hours=1)))
    service.apply(replace(spec, machines=(*spec.machines, machine("db", "host-1"))))
    events = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    assert {event.not_before for event in events} == {START + timedelta(hours=1)}


def test_a_group_can_shorten_the_notice_of_a_degraded_host(service: Service) -> None:
    service.apply(web(GroupPolicy(degrade_notice=timedelta(days=1))))
    placed = service.host_order("host-1", Action.DEGRADE)
    assert placed.events == ()
    assert placed.order.waiting[0].reason == "guests are notified at 2026-01-11T12:00:00Z"
    service.advance(days=6)
    (event,) = service.events("web-0")
    assert event.not_before == START + timedelta(days=7)


def test_a_guest_may_defer_an_event_once_together_with_its_stage(service: Service) -> None:
    spec = web(GroupPolicy(defer=timedelta(minutes=10)))
    service.apply(replace(spec, machines=(*spec.machines, machine("db", "host-1"))))
    db, told = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    before = service.incarnation("web-0")
    service.fleet.guests.defer(service.machine("web-2").id, {told.id: 3600})
    later = START + timedelta(minutes=25)
    assert [event.not_before for event in (*service.events("web-0"), *service.events("db"))] == [later, later]
    assert service.incarnation("web-0") == before + 1
    # So that calendars move both.
    assert [each.deferrals for each in service.views.coming()] == [(START,), (START,)]
    with pytest.raises(Conflict, match="deferred already by web-2"):
        service.fleet.guests.defer(service.machine("web-0").id, {told.id: 60})
    with pytest.raises(Conflict, match="cannot be deferred"):
        service.fleet.guests.defer(service.machine("db").id, {db.id: 60})
    service.advance(minutes=24, seconds=59)
    assert service.events("web-0")[0].status is EventStatus.SCHEDULED
    service.advance(seconds=1)
    assert service.events("web-0")[0].status is EventStatus.STARTED
    with pytest.raises(Conflict, match="too late"):
        service.fleet.guests.defer(service.machine("web-0").id, {told.id: 60})


# External work


def outside(service: Service, *, heartbeat: timedelta | None = None) -> str:
    """Place an order for external work, and let it start."""
    request = OrderRequest(by="ops", driver=EXTERNAL, terms=OrderTerms(heartbeat=heartbeat))
    placed = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REDEPLOY)
    service.approve("web-2", *placed.events)
    return placed.order.id


def test_external_work_waits_for_its_report(service: Service) -> None:
    order = outside(service)
    service.advance(minutes=9)
    assert service.views.order(order).order.state is OrderState.STARTED
    service.orders.complete_order(order, by="runbook")
    service.tick()
    assert service.views.order(order).order.state is OrderState.DONE
    assert service.machine("web-0").host == "host-1"
    done = [record for record in service.history(order=order) if record.kind == "step-done"]
    assert {record.by for record in done} == {"runbook"}


def test_a_report_timeout_is_a_failure_even_if_service_time_stands_still(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=1))
    service.real += 59
    service.orders.heartbeat(order)
    service.real += 59
    service.tick()
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 1
    service.tick()
    failed = service.views.order(order).order
    assert failed.state is OrderState.FAILED
    assert failed.waiting[0].reason == "failed: the external program has not reported for 1 m"


def test_work_without_a_first_report_has_no_timeout_even_after_a_retry(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=1))
    service.real += 86_400
    service.advance(days=1)
    service.restart()
    service.real += 86_400
    service.tick()
    assert service.views.order(order).order.state is OrderState.STARTED
    service.orders.heartbeat(order)
    service.orders.fail_order(order, by="runbook", why="the playbook broke")
    service.orders.retry_order(order, by="ops")
    service.real += 86_400
    service.advance(minutes=2)
    assert service.views.order(order).order.state is OrderState.STARTED


def test_advancing_the_clock_causes_no_report_timeout(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=1))
    service.orders.heartbeat(order)
    service.advance(hours=1)
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 60
    service.advance(minutes=1)
    assert service.views.order(order).order.state is OrderState.FAILED


def test_a_quickly_restarted_server_continues_the_report_timeout(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=10))
    service.orders.heartbeat(order)
    with service.store.read() as snapshot:
        assert snapshot.rules.around(orders=[order]).orders[order].heard_at == service.real_now()
    service.real += 240
    present(service)
    service.restart()
    service.real += 359
    service.tick()
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 1
    service.tick()
    assert service.views.order(order).order.state is OrderState.FAILED


def test_an_outage_does_not_count_for_the_report_timeout(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=10))
    service.orders.heartbeat(order)
    service.real += 540
    present(service)
    service.real += 61
    service.restart()
    service.real += 599
    service.tick()
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 1
    service.tick()
    assert service.views.order(order).order.state is OrderState.FAILED


def present(service: Service) -> None:
    """Save that the server is running now, in real time."""
    with writing(service.store) as tx:
        tx.time.set_kind(TimeKind.SYSTEM)
        tx.time.set_present(service.real_now())


def test_with_a_manual_clock_a_restart_restarts_the_report_timeout(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=1))
    service.orders.heartbeat(order)
    service.real += 59
    service.restart()
    service.real += 59
    service.advance(minutes=1)
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 1
    service.tick()
    assert service.views.order(order).order.state is OrderState.FAILED


def test_an_external_failure_waits_for_a_person(service: Service) -> None:
    order = outside(service)
    service.orders.fail_order(order, by="runbook", why="the playbook broke")
    assert service.views.order(order).order.waiting[0].reason == "failed: the playbook broke"
    failed = [record for record in service.history(order=order) if record.kind == Kind.STEP_FAILED]
    assert {record.by for record in failed} == {"runbook"}
    service.orders.retry_order(order, by="ops")
    service.tick()
    service.orders.complete_order(order, by="ops")
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_after_a_crash_external_work_is_released(service: Service) -> None:
    request = OrderRequest(by="ops", driver=EXTERNAL)
    placed = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REBOOT)
    service.fleet.guests.approve(service.machine("web-2").id, [placed.events[0].id], address="")
    service.restart()
    assert service.reload(placed).state is OrderState.STARTED


def test_a_report_on_other_work_is_refused(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    with pytest.raises(Conflict, match="it takes no outside reports"):
        service.orders.complete_order(placed.order.id, by="ops")
