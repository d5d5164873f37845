"""Jobs in one batch: each is rolled back alone, and none is answered before all are durable."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import event

from forewarn.control.unsaved_activity import UnsavedNotices
from forewarn.core.basic_types import EventId, MachineId, NameKind
from forewarn.core.errors import Conflict, NotFound, Unavailable, UnknownName
from forewarn.server.threads.batches import Batches, Outcome
from forewarn.store.batch import Transaction
from forewarn.store.store import Store, open_store
from tests.contract.samples import NOW, machine, save
from tests.helpers.database.statements import counted
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.lost_answers import lost_commit
from tests.helpers.service.harness import Ids, Polls

EVENT, MACHINE = EventId("E"), MachineId("m")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(sqlite_url(tmp_path), new_id=Ids())
    yield opened
    opened.close()


@pytest.fixture
def guests() -> Polls:
    return Polls()


@pytest.fixture
def batches(store: Store, guests: Polls) -> Batches:
    return Batches(store, UnsavedNotices(guests))


Job = Callable[[Transaction], str]


def adding(name: str) -> Job:
    """Make a job that adds a machine and returns its name."""

    def add(tx: Transaction) -> str:
        save(tx, machines=[machine(name)])  # type: ignore[arg-type]
        return name

    return add


def failing_after(job: Job, error: BaseException) -> Job:
    def fail(tx: Transaction) -> str:
        job(tx)
        raise error

    return fail


def names(store: Store) -> list[str]:
    with store.read() as snapshot:
        return sorted(each.name for each in snapshot.rules.everything().machines.values())


def notices(store: Store) -> dict[MachineId, datetime]:
    with store.read() as snapshot:
        return dict(snapshot.work.notices([EVENT]).get(EVENT, {}))


def refuse_next_commit(store: Store) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("the disk is full")

    event.listen(store.engines.writing, "commit", refuse, once=True)


def test_jobs_are_saved_in_one_transaction_and_each_has_its_result(store: Store, batches: Batches) -> None:
    with counted(store) as asked:
        outcomes = batches.run_jobs([adding("a"), adding("b")])
    assert outcomes == [Outcome("a"), Outcome("b")]
    assert asked.writes == 1, asked.listed()
    assert names(store) == ["a", "b"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_job_that_raises_is_rolled_back_alone(store: Store, batches: Batches, failing: int) -> None:
    error = NotFound("nothing")
    jobs = [adding("a"), adding("b"), adding("c")]
    jobs[failing] = failing_after(jobs[failing], error)
    outcomes = batches.run_jobs(jobs)
    assert [each.error for each in outcomes] == [error if each == failing else None for each in range(3)]
    assert names(store) == [name for number, name in enumerate("abc") if number != failing]


def test_any_exception_of_a_job_leaves_the_other_jobs_unaffected(store: Store, batches: Batches) -> None:
    broken = SystemExit("told to break")
    first, second, third = batches.run_jobs([adding("a"), failing_after(adding("b"), broken), adding("c")])
    assert (first.error, second.error, third.error) == (None, broken, None)
    assert names(store) == ["a", "c"]


def test_the_error_of_a_commit_goes_to_each_job_that_ran_and_to_no_other(
    store: Store, batches: Batches
) -> None:
    refuse_next_commit(store)
    jobs = [adding("a"), failing_after(adding("b"), NotFound("nothing")), adding("c")]
    outcomes = batches.run_jobs(jobs, enough=lambda done: done == 2)
    assert [str(each.error) for each in outcomes] == ["the disk is full"] * 2
    first, second = (each.error for each in outcomes)
    assert isinstance(first, Unavailable)
    assert first is not second  # each waiter raises its own
    assert names(store) == []
    assert batches.run_jobs(jobs[2:]) == [Outcome("c")]
    assert names(store) == ["c"]


@pytest.mark.parametrize("saved", [True, False])
def test_a_commit_without_an_answer_is_uncertain_for_each_job_that_ran(
    store: Store, batches: Batches, saved: bool
) -> None:
    with lost_commit(saved=saved):
        outcomes = batches.run_jobs([adding("a"), adding("b")])
    assert [type(each.error).__name__ for each in outcomes] == ["Uncertain"] * 2
    assert names(store) == (["a", "b"] if saved else [])


def test_the_error_of_a_batch_that_cannot_begin_goes_to_the_first_job(
    store: Store, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Store) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(Store, "batch", away)
    (outcome,) = batches.run_jobs([adding("a"), adding("b")])
    assert str(outcome.error) == "the database is away"


def test_a_batch_ends_early_when_enough_jobs_are_done(store: Store, batches: Batches) -> None:
    seen: list[int] = []

    def enough(done: int) -> bool:
        seen.append(done)
        return done == 2

    outcomes = batches.run_jobs([adding("a"), adding("b"), adding("c")], enough=enough)
    assert (outcomes, seen) == ([Outcome("a"), Outcome("b")], [1, 2])
    assert names(store) == ["a", "b"]


def test_sent_notices_are_saved_before_each_job(store: Store, guests: Polls, batches: Batches) -> None:
    seen: list[dict[MachineId, datetime]] = []
    other = MachineId("other")

    def look(tx: Transaction) -> None:
        seen.append(dict(tx.work.notices([EVENT]).get(EVENT, {})))
        guests.sent = {EVENT: {other: NOW}}  # while the first job runs

    guests.sent = {EVENT: {MACHINE: NOW}}
    batches.run_jobs([look, look])
    assert seen == [{MACHINE: NOW}, {MACHINE: NOW, other: NOW}]
    assert notices(store) == {MACHINE: NOW, other: NOW}


def test_sent_notices_are_saved_by_the_next_job_if_one_is_rolled_back(
    store: Store, guests: Polls, batches: Batches
) -> None:
    guests.sent = {EVENT: {MACHINE: NOW}}
    failed, done = batches.run_jobs([failing_after(adding("a"), Conflict("refused")), adding("b")])
    assert (str(failed.error), done) == ("refused", Outcome("b"))
    assert notices(store) == {MACHINE: NOW}


def test_sent_notices_are_saved_by_the_next_batch_if_a_commit_fails(
    store: Store, guests: Polls, batches: Batches
) -> None:
    guests.sent = {EVENT: {MACHINE: NOW}}
    refuse_next_commit(store)
    batches.run_jobs([adding("a")])
    assert notices(store) == {}
    batches.run_jobs([adding("b")])
    assert notices(store) == {MACHINE: NOW}


def test_saved_notices_are_not_saved_again(store: Store, guests: Polls, batches: Batches) -> None:
    guests.sent = {EVENT: {MACHINE: NOW}}
    batches.transact(adding("a"))
    with counted(store) as asked:
        batches.transact(lambda _: None)
    assert not [text for text in asked.texts if text.startswith(("INSERT", "UPDATE"))]


def test_transact_returns_when_its_work_is_durable(store: Store, batches: Batches) -> None:
    assert batches.transact(adding("a")) == "a"
    assert names(store) == ["a"]


def test_transact_raises_the_error_of_its_work_and_saves_nothing(store: Store, batches: Batches) -> None:
    error = Conflict("refused")
    with pytest.raises(Conflict) as raised:
        batches.transact(failing_after(adding("a"), error))
    assert raised.value is error
    assert names(store) == []


def test_transact_raises_the_error_of_its_commit(store: Store, batches: Batches) -> None:
    refuse_next_commit(store)
    with pytest.raises(Unavailable, match="the disk is full"):
        batches.transact(adding("a"))
    assert names(store) == []


def test_effects_follow_the_commit_and_a_rolled_back_job_has_none(store: Store, batches: Batches) -> None:
    heard: list[str] = []

    def telling(name: str) -> Job:
        def tell(tx: Transaction) -> str:
            tx.after_commit(
                lambda: heard.append(f"{name} after {names(store)}"),
                undone=lambda: heard.append(f"{name} undone"),
            )
            return adding(name)(tx)

        return tell

    batches.run_jobs([telling("a"), failing_after(telling("b"), Conflict("refused"))])
    assert heard == ["b undone", "a after ['a']"]


def test_notices_sent_while_a_job_waits_for_the_lock_are_saved_before_it(
    store: Store, guests: Polls, batches: Batches
) -> None:
    def send(*_: object) -> None:
        guests.sent[EVENT] = {MACHINE: NOW}

    event.listen(store.engines.writing, "begin", send, once=True)  # another writer releases the lock now
    seen = batches.transact(lambda tx: tx.work.notices([EVENT]))
    assert seen == {EVENT: {MACHINE: NOW}}


def test_a_transaction_cannot_be_used_after_its_batch(store: Store, batches: Batches) -> None:
    kept = batches.transact(lambda tx: tx)
    with pytest.raises(RuntimeError, match="after the end of its batch"):
        kept.lock()
    with pytest.raises(RuntimeError, match="after the end of its batch"):
        kept.after_commit(lambda: None)
    assert batches.transact(adding("web-0")) == "web-0"


def test_a_job_cannot_commit_itself(store: Store, batches: Batches) -> None:
    with pytest.raises(RuntimeError, match="a job must not commit"):
        batches.transact(lambda _: batches.transact(adding("web-0")))
    assert names(store) == []


def test_the_copy_of_a_commits_error_is_complete(store: Store, batches: Batches) -> None:
    lost = NotFound("gone", unknown=UnknownName(kind=NameKind.HOST, name="h", project=None))

    def lose(*_: object) -> None:
        raise lost

    def both(*_: object) -> None:
        event.listen(store.engines.writing, "commit", lose, once=True)

    first, second = batches.run_jobs([failing_commit(both), adding("web-1")])
    assert [each.error.unknown for each in (first, second) if isinstance(each.error, NotFound)] == [
        lost.unknown,
        lost.unknown,
    ]


def failing_commit(then: Callable[[], None]) -> Job:
    def job(tx: Transaction) -> str:
        then()
        return adding("web-0")(tx)

    return job
