"""What operators and groups may ask for beyond the contract: holds, emergencies, policies, work outside."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.idempotent_calls import IdempotentResponse, IdempotentCall
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
from forewarn.core.orders.requests import OrderRequest
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.lost_answers import lost_commit
from tests.helpers.service.harness import START, TEST, Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of


def web(policy: GroupPolicy | None = None) -> FleetSpec:
    """Two machines of one update domain on host-1, one of another on host-2."""
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


def test_an_event_that_a_hold_made_stale_is_told_anew_after_the_release(service: Service) -> None:
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
def test_a_hold_of_memory_that_is_refused_stays_refused_if_the_answer_of_its_commit_is_lost(
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


def test_a_hold_of_memory_is_recorded_once_though_nobody_knew_that_it_was_saved(service: Service) -> None:
    """It was set and lifted while the database was away, whose answer to the saving was lost."""
    unsaved = service.use_cases.unsaved_holds
    id_ = unsaved.new_id()
    for _ in range(2):
        hold = unsaved.put(TEST, id_=id_, project=None, host=None)
        unsaved.release(hold.id, by="ops")
        unsaved.save()
    about_holds = [record.kind for record in service.history() if record.kind.startswith("hold-")]
    assert about_holds == [Kind.HOLD_SET, Kind.HOLD_RELEASED]


def test_a_hold_of_memory_that_cannot_be_kept_is_recorded_and_shown_until_it_is_released(
    service: Service,
) -> None:
    unsaved, api = service.use_cases.unsaved_holds, Api(app_of(service))
    wrong = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-9"))
    right = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-1"))
    unsaved.save()
    (record,) = [each for each in service.history() if each.kind == Kind.HOLD_REFUSED]
    assert (record.by, record.host) == ("test", "host-9")
    assert 'it is not kept, and holds nothing: host "host-9" does not exist' in record.reason
    kept, refused = api("GET", "/v1/holds").json()["holds"]
    assert (kept["id"], kept["refused"], refused["id"]) == (right.id, None, wrong.id)
    assert 'host "host-9" does not exist' in refused["refused"]
    assert "forewarn_refused_holds_total 1.0" in api("GET", "/metrics").text
    assert api("POST", f"/v1/holds/{wrong.id}/release").status_code == 200
    assert [each["id"] for each in api("GET", "/v1/holds").json()["holds"]] == [right.id]
    assert api("POST", f"/v1/holds/{wrong.id}/release").status_code == 404


def test_a_call_whose_hold_of_memory_was_refused_is_not_answered_as_done(service: Service) -> None:
    unsaved = service.use_cases.unsaved_holds
    call = IdempotentCall(caller="test", key="k", method="POST", path="/v1/holds", body=b"{}")
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=HostName("host-9"), call=call)
    unsaved.set_response(hold, IdempotentResponse(status=201, body=b"held"))
    unsaved.save()
    assert not service.answering.answer(call, lambda: IdempotentResponse(status=404, body=b"")).again


def test_a_hold_of_memory_that_was_lifted_before_it_was_refused_is_not_shown(service: Service) -> None:
    unsaved = service.use_cases.unsaved_holds
    hold = unsaved.put(TEST, id_=unsaved.new_id(), project=ProjectName("none"), host=None)
    unsaved.release(hold.id, by="ops")
    unsaved.save()
    assert (unsaved.refused, unsaved.in_force) == ((), [])


def test_holds_that_could_not_be_read_are_read_the_next_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_hold_reaches_no_further_than_it_says(service: Service) -> None:
    service.fleet.hosts.hold(TEST, project=None, host=HostName("host-2"))
    assert service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.fleet.hosts.hold(TEST, project=ProjectName("default"), host=None)
    assert service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE).events == ()


def test_a_failed_host_waits_for_no_hold(service: Service) -> None:
    service.fleet.hosts.hold(TEST, project=None, host=None)
    assert service.host_order("host-1", Action.FAIL).events


def test_a_second_hold_on_the_same_thing_names_the_first(service: Service) -> None:
    first = service.fleet.hosts.hold(TEST, project=None, host=None)
    with pytest.raises(Conflict, match=first.id):
        service.fleet.hosts.hold(TEST, project=None, host=None)


# Emergencies, and owners who do not want to wait


def test_an_emergency_shortens_the_notice_and_is_recorded_as_a_broken_promise(service: Service) -> None:
    terms = OrderTerms(emergency="coolant leak", notice=timedelta(minutes=2))
    request = OrderRequest(by="ops", terms=terms)
    (event,) = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REBOOT).events
    assert event.not_before == START + timedelta(minutes=2)
    (broken,) = [record for record in service.history() if record.kind == "promise-broken"]
    assert broken.reason == "coolant leak: 2 m of notice instead of 15 m"


def test_the_owner_of_a_wedged_machine_need_not_wait_for_its_guests(service: Service) -> None:
    request = OrderRequest(by="owner", terms=OrderTerms(at_once=True))
    (event,) = service.orders.order_machine("web-0", Action.RESTART, request).events
    assert event.status is EventStatus.STARTED
    assert [(word.by, word.kind) for word in event.approvals] == [("owner", "person")]


# Policies


def test_where_all_must_approve_one_is_not_enough(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.ALL)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.approve("web-0", told)
    service.approve("web-2", told)
    (event,) = service.events("web-0")
    assert (event.status, event.awaited) == (EventStatus.SCHEDULED, ("web-1",))
    service.approve("web-1", told)
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_where_the_leader_approves_nobody_else_can(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.LEADER)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.approve("web-1", told)
    assert service.events("web-0")[0].awaited == ("web-0",)
    service.approve("web-0", told)
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_a_persons_word_is_enough_whatever_the_policy(service: Service) -> None:
    service.apply(web(GroupPolicy(approval=ApprovalRule.ALL)))
    (told,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    assert service.orders.approve_event(told.id, by="owner").status is EventStatus.STARTED


def test_a_policy_that_approves_by_itself_is_for_users_orders_only(service: Service) -> None:
    service.apply(web(GroupPolicy(auto_approve=True)))
    (mine,) = service.order("web-0", Action.RESTART).events
    assert (mine.status, mine.approvals[0].kind) == (EventStatus.STARTED, "policy")
    assert (
        service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events[0].status
        is EventStatus.SCHEDULED
    )


def test_a_group_may_ask_for_more_notice_and_all_of_the_host_get_it(service: Service) -> None:
    spec = web(GroupPolicy(notice=timedelta(hours=1)))
    service.apply(replace(spec, machines=(*spec.machines, machine("db", "host-1"))))
    events = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    assert {event.not_before for event in events} == {START + timedelta(hours=1)}


def test_guests_may_want_to_be_told_of_a_degraded_host_later_than_people(service: Service) -> None:
    service.apply(web(GroupPolicy(degrade_notice=timedelta(days=1))))
    placed = service.host_order("host-1", Action.DEGRADE)
    assert placed.events == ()
    assert placed.order.waiting[0].reason == "guests are told at 2026-01-11T12:00:00Z"
    service.advance(days=6)
    (event,) = service.events("web-0")
    assert event.not_before == START + timedelta(days=7)


def test_a_guest_may_put_an_event_off_once_and_the_whole_stage_with_it(service: Service) -> None:
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
    with pytest.raises(Conflict, match="put off already by web-2"):
        service.fleet.guests.defer(service.machine("web-0").id, {told.id: 60})
    with pytest.raises(Conflict, match="cannot be put off"):
        service.fleet.guests.defer(service.machine("db").id, {db.id: 60})
    service.advance(minutes=24, seconds=59)
    assert service.events("web-0")[0].status is EventStatus.SCHEDULED
    service.advance(seconds=1)
    assert service.events("web-0")[0].status is EventStatus.STARTED
    with pytest.raises(Conflict, match="too late"):
        service.fleet.guests.defer(service.machine("web-0").id, {told.id: 60})


# Work that somebody else does


def outside(service: Service, *, heartbeat: timedelta | None = None) -> str:
    """Place an order whose work is done outside, and let it start."""
    request = OrderRequest(by="ops", driver=EXTERNAL, terms=OrderTerms(heartbeat=heartbeat))
    placed = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REDEPLOY)
    service.approve("web-2", *placed.events)
    return placed.order.id


def test_work_outside_is_waited_for_until_it_is_reported_done(service: Service) -> None:
    order = outside(service)
    service.advance(minutes=9)
    assert service.views.order(order).order.state is OrderState.STARTED
    service.orders.complete_order(order, by="runbook")
    service.tick()
    assert service.views.order(order).order.state is OrderState.DONE
    assert service.machine("web-0").host == "host-1"
    done = [record for record in service.history(order=order) if record.kind == "step-done"]
    assert {record.by for record in done} == {"runbook"}


def test_silence_outside_for_too_long_is_a_failure_though_service_time_stands_still(service: Service) -> None:
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


def test_what_nobody_has_taken_up_waits_without_a_limit_also_once_tried_again(service: Service) -> None:
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


def test_a_clock_that_is_turned_makes_nobody_late(service: Service) -> None:
    order = outside(service, heartbeat=timedelta(minutes=1))
    service.orders.heartbeat(order)
    service.advance(hours=1)
    assert service.views.order(order).order.state is OrderState.STARTED
    service.real += 60
    service.advance(minutes=1)
    assert service.views.order(order).order.state is OrderState.FAILED


def test_a_server_that_is_started_anew_at_once_goes_on_counting(service: Service) -> None:
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


def test_an_outage_is_nobodys_silence(service: Service) -> None:
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
    """Keep that the service runs now, in the world's own time."""
    with writing(service.store) as tx:
        tx.time.set_kind(TimeKind.SYSTEM)
        tx.time.set_present(service.real_now())


def test_where_time_is_turned_a_server_that_is_started_anew_begins_to_count_anew(service: Service) -> None:
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


def test_a_failure_outside_waits_for_a_person(service: Service) -> None:
    order = outside(service)
    service.orders.fail_order(order, by="runbook", why="the playbook broke")
    assert service.views.order(order).order.waiting[0].reason == "failed: the playbook broke"
    failed = [record for record in service.history(order=order) if record.kind == Kind.STEP_FAILED]
    assert {record.by for record in failed} == {"runbook"}
    service.orders.retry_order(order, by="ops")
    service.tick()
    service.orders.complete_order(order, by="ops")
    assert service.events("web-0")[0].status is EventStatus.STARTED


def test_a_server_that_died_before_others_were_let_begin_lets_them_begin(service: Service) -> None:
    request = OrderRequest(by="ops", driver=EXTERNAL)
    placed = service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.REBOOT)
    service.fleet.guests.approve(service.machine("web-2").id, [placed.events[0].id], address="")
    service.restart()
    assert service.reload(placed).state is OrderState.STARTED


def test_nobody_reports_on_work_that_is_not_theirs(service: Service) -> None:
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    with pytest.raises(Conflict, match="nobody else has a say"):
        service.orders.complete_order(placed.order.id, by="ops")
