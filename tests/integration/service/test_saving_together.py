"""Waiting jobs share a transaction: everything that was answered is saved and published."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from forewarn.control.engine import engine, order_work
from forewarn.control.engine.incoming_changes import ExternalTimeout
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import EXTERNAL, Action, OrderId, OrderState
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.batch import Transaction
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.boards import read_whole, sent_by
from tests.helpers.service.harness import TEST, Service
from tests.helpers.service.served import sample
from tests.helpers.service.working import WorkerByHand


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    opened = Service(sqlite_url(tmp_path))
    opened.apply(sample())
    for name in ("web-0", "db"):
        opened.poll(name)
    opened.advance(minutes=3)
    yield opened
    opened.close()


@pytest.fixture
def worker(service: Service, monkeypatch: pytest.MonkeyPatch) -> WorkerByHand:
    return WorkerByHand(service, monkeypatch)


def restart(service: Service, name: str) -> Callable[[Transaction], Placed]:
    return lambda tx: service.use_cases.orders.order_machine(tx, name, Action.RESTART, TEST)


def test_each_job_sees_the_changes_of_earlier_jobs(service: Service, worker: WorkerByHand) -> None:
    first, second = worker.do(restart(service, "web-0"), restart(service, "web-0"))
    assert first.result(0).order.machine_name == "web-0"
    assert isinstance(second.exception(0), Conflict)
    assert len(service.events("web-0")) == 1


def test_a_failed_job_is_rolled_back_alone_and_the_others_are_published(
    service: Service, worker: WorkerByHand
) -> None:
    def order_and_fail(tx: Transaction) -> None:
        restart(service, "db")(tx)
        raise NotFound("nothing")

    answers = worker.do(restart(service, "web-0"), order_and_fail, restart(service, "web-3"))
    assert [answer.exception(0) is None for answer in answers] == [True, False, True]
    assert (len(service.events("web-0")), service.events("db")) == (2, [])
    assert sent_by(worker.board) == sent_by(read_whole(service.store, lineage=service.url))


def test_a_failed_commit_fails_all_jobs_and_changes_nothing(service: Service, worker: WorkerByHand) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("the disk is full")

    shown, heard = sent_by(worker.board), list[str]()
    event.listen(service.store.engines.writing, "commit", refuse, once=True)
    answers = worker.do(
        restart(service, "web-0"),
        lambda tx: tx.after_commit(lambda: heard.append("saved")),
        restart(service, "no-such"),
    )
    assert [str(answer.exception(0)) for answer in answers] == ["the disk is full"] * 3
    assert (heard, service.events("web-0")) == ([], [])
    assert sent_by(worker.board) == shown
    (again,) = worker.do(restart(service, "web-0"))
    assert again.exception(0) is None


def test_changes_of_another_process_are_read(service: Service, worker: WorkerByHand) -> None:
    told, service.store.saved = service.store.saved, lambda _: None
    service.orders.order_machine("db", Action.RESTART, TEST)
    service.store.saved = told
    worker.do(restart(service, "web-0"))
    assert sent_by(worker.board) == sent_by(read_whole(service.store, lineage=service.url))
    assert len(service.events("db")) == 1


def test_after_an_uncertain_commit_the_store_is_read(service: Service, worker: WorkerByHand) -> None:
    told, service.store.saved = service.store.saved, lambda _: None
    service.orders.order_machine("db", Action.RESTART, TEST)
    service.store.saved = told
    told(None)
    worker.feed.catch_up()
    assert sent_by(worker.board) == sent_by(read_whole(service.store, lineage=service.url))


def test_a_tick_yields_after_a_piece_and_leaves_the_rest(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_work, "TOGETHER", 1)
    for name in ("web-0", "db"):
        service.orders.order_machine(name, Action.RESTART, TEST)
    service.tick()
    service.clock.set(service.clock.now() + timedelta(minutes=15))
    pieces = []
    while service.engine.tick(service.clock.now(), should_yield=lambda: True):
        events = service.everything().events.values()
        started = len([each for each in events if each.started_at is not None])
        pieces.append((started, len(service.driver.begun)))
    assert pieces == [(1, 0), (1, 1), (2, 1), (2, 2)]


def test_silent_groups_are_disabled_in_batches(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BATCH", 1)
    service.clock.set(service.clock.now() + timedelta(days=2))
    enabled = []
    for _ in range(2):
        assert service.engine.tick(service.clock.now())
        enabled.append(len([group for group in service.everything().groups.values() if group.enabled]))
    assert enabled == [1, 0]


def outside(service: Service, name: str) -> OrderId:
    """Start external work on a machine, with one report."""
    placed = service.orders.order_machine(name, Action.FREEZE, OrderRequest(by="ops", driver=EXTERNAL))
    service.approve(name, *placed.events)
    service.orders.heartbeat(placed.order.id)
    return placed.order.id


def test_report_timeouts_fail_one_order_at_a_time_while_callers_wait(
    service: Service,
) -> None:
    for name in ("web-0", "web-1", "web-2"):
        outside(service, name)
    service.real += 86_400
    failed = []
    for _ in range(3):
        service.engine.tick(service.clock.now(), should_yield=lambda: True)
        orders = service.everything().orders.values()
        failed.append(len([order for order in orders if order.state is OrderState.FAILED]))
    assert failed == [1, 2, 3]


def test_an_overdue_order_that_cannot_be_failed_does_not_block_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, *others = [outside(service, name) for name in ("web-0", "web-1", "web-2")]
    service.real += 86_400
    fail = ExternalTimeout.fail

    def fail_some(self: ExternalTimeout, tx: Transaction, order: OrderId, now: datetime, *, why: str) -> None:
        if order == faulty:
            raise RuntimeError("a fault of forewarn's own")
        fail(self, tx, order, now, why=why)

    monkeypatch.setattr(ExternalTimeout, "fail", fail_some)
    for _ in range(4):
        with suppress(engine.Stuck):
            service.engine.tick(service.clock.now(), should_yield=lambda: True)
    assert [service.views.order(each).order.state for each in others] == [OrderState.FAILED] * 2


def test_due_work_is_not_starved_by_starting_steps(service: Service) -> None:
    service.orders.order_machine("db", Action.RESTART, TEST)
    service.tick()
    service.clock.set(service.clock.now() + timedelta(minutes=15))
    for _ in range(2):
        service.context.outbox.mark_incomplete()  # as if steps had started repeatedly
        service.engine.tick(service.clock.now(), should_yield=lambda: True)
    (event,) = service.events("db")
    assert event.started_at is not None


def test_an_outage_is_logged_when_it_begins_and_not_at_every_tick(
    service: Service,
    worker: WorkerByHand,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(worker.feed, "catch_up", away)
    for _ in range(5):
        worker.tick()
    assert [line.getMessage() for line in caplog.records] == [
        "the store cannot be written; polls are still answered: the database is away"
    ]
