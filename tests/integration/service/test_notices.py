"""Proof of notice: when guests received events, in the history, the API and the metrics."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.control.engine.incoming_changes import GuestActivitySaver
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.core.basic_types import Action, Kind, MachineId, Work
from forewarn.core.errors import Conflict
from forewarn.core.model.clock_slew import Absence
from forewarn.core.time_formats import format_span_briefly
from forewarn.server.threads.batches import Batches
from forewarn.store.batch import Transaction
from forewarn.wire.answers.event_answers import EventDetailAnswer
from forewarn.wire.answers.order_answers import OrderDetailWithEventsAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import Program, run, sample_fleet
from tests.helpers.service.harness import START, Polls, Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of, check_answer


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    members = (machine(f"web-{n}", "host-1", group="web") for n in range(3))
    service.apply(fleet(group("web"), *members))
    service.poll("web-0")
    yield service
    service.close()


def flags(service: Service) -> list[tuple[str, str]]:
    kinds = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER)
    return [(record.kind, record.reason) for record in service.history() if record.kind in kinds]


def maintenance(service: Service) -> Any:
    return service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)


def was_away(service: Service, **span: float) -> None:
    """Note that the server was down until now."""
    now = service.clock.now()
    service.engine.save_absence(Absence(since=now - timedelta(**span), until=now))


def test_late_and_missed_notices_are_recorded_at_the_end_of_the_event(service: Service) -> None:
    maintenance(service)
    service.advance(minutes=5)
    service.fetch("web-0", "web-1")
    service.advance(minutes=15)
    assert flags(service) == [("notice-never", "promised 15 m: web-2")]


def test_a_notice_delayed_by_the_service_is_late(service: Service) -> None:
    maintenance(service)
    service.fetch("web-0")
    service.advance(minutes=5)
    was_away(service, minutes=4)
    service.fetch("web-1")
    service.advance(minutes=10)
    assert flags(service) == []
    service.advance(minutes=5)
    assert flags(service) == [
        ("notice-late", "promised 15 m: web-1 got 10 m, web-2 got 0 s"),
    ]


def test_a_peers_approval_before_the_named_machine_polled_is_not_late(service: Service) -> None:
    placed = maintenance(service)
    service.fetch("web-0")
    service.fleet.guests.approve(service.machine("web-0").id, [placed.events[0].id], address="127.0.0.1")
    service.advance(seconds=1)
    service.fetch("web-1", "web-2")
    service.advance(minutes=5)
    assert flags(service) == []


def test_an_event_with_timely_notices_is_not_flagged(service: Service) -> None:
    maintenance(service)
    service.fetch("web-0", "web-1", "web-2")
    service.advance(minutes=20)
    assert flags(service) == []


def test_a_late_report_of_a_notice_counts_by_its_time_until_the_event_is_over(
    service: Service,
) -> None:
    (event,) = maintenance(service).events
    told_at = service.clock.now() + timedelta(seconds=1)
    service.advance(minutes=15)
    service.polls.sent = {event.id: {service.machine("web-0").id: told_at}}
    service.advance(minutes=5)
    judged = [("notice-never", "promised 15 m: web-1, web-2")]
    assert flags(service) == judged
    service.polls.sent = {event.id: {service.machine("web-1").id: told_at}}
    service.advance(minutes=5)
    assert flags(service) == judged
    shown = {each.machine: each.late for each in service.views.event(event.id).notices if each.sent_at}
    assert shown == {"web-0": False, "web-1": False}


def test_a_notice_sent_just_before_an_approval_counts_for_its_start(service: Service) -> None:
    placed = maintenance(service)
    service.advance(seconds=1)
    service.fetch("web-0", "web-1")
    service.fleet.guests.approve(service.machine("web-0").id, [placed.events[0].id], address="127.0.0.1")
    service.advance(minutes=5)
    assert flags(service) == [("notice-never", "promised 15 m: web-2")]


def test_a_failed_host_promises_nothing(service: Service) -> None:
    service.host_order("host-1", Action.FAIL)
    assert flags(service) == []


def test_a_view_includes_unsaved_notices(service: Service) -> None:
    placed = maintenance(service)
    service.fetch("web-1")
    shown = service.views.event(placed.events[0].id).notices
    assert [each.sent_at for each in shown] == [None, START, None]


def test_after_a_restart_the_first_time_stays(service: Service) -> None:
    placed = maintenance(service)
    service.fetch("web-0")
    service.tick()
    service.restart()
    service.advance(minutes=1)
    service.fetch("web-0")
    service.tick()
    assert service.views.event(placed.events[0].id).notices[0].sent_at == START


def test_notices_of_a_rolled_back_transaction_are_saved_by_the_next(service: Service) -> None:
    post, machine_id = Polls(), MachineId("m")
    unsaved = UnsavedNotices(post)
    batches = Batches(service.store, unsaved)
    context = replace(service.context, transact=batches.transact)
    placed = maintenance(service)
    event = placed.events[0].id
    post.sent = {event: {machine_id: START}}

    def refuse(_tx: Transaction) -> None:
        raise Conflict("refused")

    with pytest.raises(Conflict):
        batches.transact(refuse)
    post.sent = {event: {machine_id: START + timedelta(seconds=1)}}
    GuestActivitySaver(context, polls=UnsavedPolls(post), unsaved=unsaved).save_notices()
    with service.store.read() as snapshot:
        assert snapshot.work.notices([event]) == {event: {machine_id: START}}


def test_the_api_shows_notice_and_impact_of_events_and_orders(service: Service) -> None:
    api = Api(app_of(service))
    placed = maintenance(service)
    service.advance(seconds=22)
    service.fetch("web-0")
    service.advance(minutes=10)
    was_away(service, minutes=5)
    service.fetch("web-1")
    service.advance(minutes=5)
    so_far = api("GET", f"/v1/events/{placed.events[0].id}").json()["event"]["notice"]
    assert so_far == {"least_seconds": 278.0, "late": 2, "never": 0, "so_far": True}
    service.advance(minutes=15)
    answer = api("GET", f"/v1/events/{placed.events[0].id}").json()
    check_answer(EventDetailAnswer, answer)
    shown = answer["event"]
    assert shown["notices"] == [
        {
            "machine": "web-0",
            "sent_at": "2026-01-05T12:00:22Z",
            "notice_seconds": 878.0,
            "late": False,
            "away_seconds": None,
        },
        {
            "machine": "web-1",
            "sent_at": "2026-01-05T12:10:22Z",
            "notice_seconds": 278.0,
            "late": True,
            "away_seconds": None,
        },
        {"machine": "web-2", "sent_at": None, "notice_seconds": None, "late": True, "away_seconds": None},
    ]
    steps = service.reload(placed).steps
    assert shown["impact_seconds"] == max(
        (step.ended_at - step.begun_at).total_seconds()
        for step in steps
        if step.begun_at is not None and step.ended_at is not None
    )
    order = api("GET", f"/v1/orders/{placed.order.id}").json()
    check_answer(OrderDetailWithEventsAnswer, order)
    assert order["order"]["notice"] == {"least_seconds": 278.0, "late": 2, "never": 0, "so_far": False}
    assert order["events"] == [shown]
    metrics = api("GET", "/metrics").text
    assert "forewarn_notice_late_total 2.0" in metrics
    assert "forewarn_notice_never_total 0.0" in metrics


WEB_0 = "127.0.1.10"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        yield program


def polled_after(program: Program, seconds: float) -> tuple[str, str]:
    """Announce work on a host and let one machine poll later; return the order and its event."""
    guest = program.guest(WEB_0)
    etag = guest.poll().headers["etag"]
    placed = program.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    program.advance(seconds)
    assert guest.poll(If_None_Match=etag).status_code == 200
    (event,) = [each["id"] for each in placed["events"] if "web-0" in each["resources"]]
    return placed["order"]["id"], event


def test_the_program_keeps_the_first_time_over_a_restart(program: Program) -> None:
    _, event = polled_after(program, 22)
    sent = notices(program, event)["web-0"]["sent_at"]
    assert program.stop() == 0
    program.start()
    program.advance(60)
    program.guest(WEB_0).poll()
    assert notices(program, event)["web-0"]["sent_at"] == sent
    program.advance(1800)
    told = notices(program, event)["web-0"]
    assert (told["sent_at"], told["late"]) == (sent, False)
    # NotBefore has whole seconds, and the clock began at a fraction of one.
    assert 878 <= told["notice_seconds"] < 879
    assert [kind for kind in kinds(program, event) if kind.startswith("notice-")] == ["notice-never"]


def test_the_program_summarizes_the_notice_it_gave(program: Program, tmp_path: Path) -> None:
    order, event = polled_after(program, 22)
    program.advance(1800)
    summed = program.get(f"/v1/orders/{order}")["order"]["notice"]
    assert (summed["late"], summed["never"] > 0) == (0, True)
    least = format_span_briefly(summed["least_seconds"])
    server = {"FOREWARN_SERVER": program.operators}
    of_order = run(tmp_path, "order", "show", order, environment=server).stdout
    assert f"least {least}, late 0, never polled {summed['never']}" in of_order
    of_event = run(tmp_path, "event", "show", event, environment=server).stdout
    assert least in of_event
    assert "never: no poll of this machine returned the event" in of_event


def notices(program: Program, event: str) -> dict[str, dict[str, Any]]:
    shown = program.get(f"/v1/events/{event}")["event"]["notices"]
    return {each["machine"]: each for each in shown}


def kinds(program: Program, event: str) -> list[str]:
    return [record["kind"] for record in program.history() if record["event"] == event]


def test_a_reader_that_reads_memory_before_its_snapshot_misses_nothing(
    service: Service,
) -> None:
    event = maintenance(service).events[0].id
    machine_id = service.machine("web-0").id
    service.fetch("web-0")
    unsaved = service.use_cases.unsaved
    look, polls = unsaved.now(), service.use_cases.polls.fresh()
    with service.store.read() as before:
        assert look.notices(before.work, [event]) == {event: {machine_id: START}}
    unsaved.pending()  # the boards hand their notices to the worker
    half_way = unsaved.now()
    service.use_cases.polls.collect()
    half_polls = service.use_cases.polls.fresh()
    service.tick()  # all is saved
    service.engine.save_all(START)
    with service.store.read() as after:
        for each in (look, half_way, unsaved.now()):
            assert each.notices(after.work, [event]) == {event: {machine_id: START}}
        assert after.fleet.last_seen([machine_id]) == {machine_id: START}
    for last_polls in (polls, half_polls):
        assert last_polls([machine_id]) == {machine_id: START}
    assert service.use_cases.polls.fresh()([machine_id]) == {}
