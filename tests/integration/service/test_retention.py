"""Old records are removed in batches, except those that are still needed."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.engine import pruning
from forewarn.control.engine.pruning import RecordPruning
from forewarn.core.basic_types import Action, EventId, Kind, Work
from forewarn.core.filters import EventFilter
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.follower import Follower
from tests.helpers.programs.process import Program, sample_fleet
from tests.helpers.service.harness import Service
from tests.helpers.service.served import sample

KEEP = timedelta(days=30)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


def pass_over(service: Service) -> int:
    """Run one pass like the engine; return the number of batches."""
    mine = RecordPruning(service.context, keep=KEEP)
    batches = 1
    while mine.prune(service.clock.now()):
        batches += 1
    return batches


def kinds(service: Service) -> list[str]:
    return [str(record.kind) for record in service.history()]


def test_old_records_are_removed_and_the_history_records_it(service: Service) -> None:
    before = service.history()
    service.advance(days=31)
    service.order("web-0", Action.FREEZE)
    pass_over(service)
    left = service.history()
    assert not {record.number for record in before} & {record.number for record in left}
    assert left[-1].kind == Kind.HISTORY_PRUNED
    assert left[-1].reason == f"{len(before)} records up to number {before[-1].number}, older than 30 d"
    assert Kind.ORDER_PLACED in kinds(service)


def rows(service: Service, event: EventId) -> tuple[int, int]:
    """Count the saved machines of an event: those that it named, and those that received it."""
    with service.store.read() as snapshot:
        told = len(snapshot.work.notices([event]).get(event, {}))
        named = snapshot.work.events(EventFilter(machine="web-0", past=True), after=None, limit=99)[0]
    return sum(each.id == event for each in named), told


def test_notices_are_removed_with_the_last_record_of_their_event(
    service: Service,
) -> None:
    service.poll("web-0")
    old = service.order("web-0", Action.RESTART).events[0].id
    service.fetch("web-0")
    service.advance(hours=1)
    service.advance(days=28)
    service.poll("web-0")
    kept = service.order("web-0", Action.RESTART).events[0].id
    service.fetch("web-0")
    service.advance(hours=1)
    assert (rows(service, old), rows(service, kept)) == ((1, 1), (1, 1))
    service.advance(days=3)
    pass_over(service)
    assert (rows(service, old), rows(service, kept)) == ((0, 0), (1, 1))
    past, present = service.views.event(old), service.views.event(kept)
    assert (past.notices, past.event.forgotten) == ((), True)
    assert [each.sent_at is None for each in present.notices] == [False]
    assert service.views.order(past.event.order).notice.never == 0


def test_notices_stay_while_a_record_of_their_event_does(service: Service) -> None:
    service.poll("web-0")
    event = service.order("web-0", Action.RESTART).events[0].id
    service.fetch("web-0")
    service.advance(hours=1)
    with writing(service.store) as tx:
        mine = [record.number for record in service.history(event=event)]
        tx.records.remove(mine[:-1])
        tx.records.remove_notices([event])
    assert rows(service, event) == (1, 1)


def test_a_pass_takes_bounded_batches(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 4)
    count = len(service.history())
    service.advance(days=31)
    assert pass_over(service) == count // 4 + 1
    assert kinds(service) == [Kind.HISTORY_PRUNED]


def test_a_second_look_on_the_same_day_does_nothing(service: Service) -> None:
    service.advance(days=31)
    pass_over(service)
    left = service.history()
    pass_over(service)
    assert service.history() == left


def test_an_interrupted_pass_is_continued_and_counted_completely(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 4)
    count = len(service.history())
    service.advance(days=31)
    assert RecordPruning(service.context, keep=KEEP).prune(service.clock.now())
    service.restart()
    pass_over(service)
    (said,) = service.history()
    assert said.reason.startswith(f"{count} records ")


def test_records_of_an_order_stay_until_it_is_over(service: Service) -> None:
    service.driver.failing.add("web-0")
    order = service.order("web-0", Action.FREEZE).order
    service.advance(days=32)
    pass_over(service)
    mine = [record for record in service.history() if record.order == order.id]
    assert [record.kind for record in mine][:2] == [Kind.ORDER_PLACED, Kind.EVENT_SCHEDULED]
    service.orders.abandon_order(order.id, by="test")
    service.advance(days=31)
    pass_over(service)
    assert not [record for record in service.history() if record.kind == Kind.ORDER_PLACED]


def test_records_of_a_rollout_stay_until_it_is_over(service: Service) -> None:
    mine = service.roll("host-1", "host-2", work=Work.FREEZE)
    service.advance(hours=1)
    done = service.roll("host-1")
    service.rollouts.pause(done.id, by="test")
    service.advance(days=31)
    pass_over(service)
    told = " ".join(record.reason for record in service.history())
    assert done.id in told
    assert mine.id not in told


def test_undelivered_records_of_a_webhook_stay(service: Service) -> None:
    service.webhooks.add("http://127.0.0.1:1/x", project=None, kinds=(), secret=None, by="test")
    service.order("web-0", Action.FREEZE)
    owed = service.history()[-2:]
    service.advance(days=31)
    pass_over(service)
    assert service.history()[: len(owed)] == owed


def test_a_server_keeps_its_history_for_the_configured_time(tmp_path: Path) -> None:
    environment = {"FOREWARN_HISTORY_KEEP": "30d"}
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet, environment=environment) as program:
        first = program.history()[0]["number"]
        program.post("/v1/machines/web-0/freeze")
        program.advance(40 * 86400)
        left = program.history()
        assert left[0]["number"] > first
        assert "history-pruned" in [record["kind"] for record in left]
        pruned = [record for record in left if record["kind"] == "history-pruned"]
        days = {record["at"][:10] for record in pruned}
        assert len(days) == len(pruned)


def test_a_reader_that_resumes_before_the_oldest_record_gets_an_error(tmp_path: Path) -> None:
    environment = {"FOREWARN_HISTORY_KEEP": "1d"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=environment) as program:
        program.advance(3 * 86400)
        left = program.history()
        with Follower(program.operators, "?last_event_id=2") as late:
            late.wait_for(left[-1]["number"])
            missing, *records = late.records
            assert late.kinds[0] == "records-missing"
            assert missing["after"] == 2
            assert missing["up_to"] < records[0]["number"]
            assert "may be missing" in missing["reason"]
            assert records == left
        with Follower(program.operators, "?since=0") as all_there_is:
            all_there_is.wait_for(left[-1]["number"])
            assert all_there_is.records == left
