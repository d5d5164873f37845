"""Every store commits a batch as a whole and undoes a failed savepoint alone."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, make_url

from forewarn.core.errors import Conflict, Unavailable, Uncertain
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved
from forewarn.store.store import Store
from tests.contract.samples import machine, save
from tests.contract.test_store_answers import answer, find, keep
from tests.helpers.database.statements import counted
from tests.helpers.database.transactions import writing


def kept(store: Store, *numbers: int) -> list[bool]:
    return [find(store, answer(number)) is not None for number in numbers]


def fail(*_: object) -> None:
    raise LookupError


def test_a_batch_is_one_transaction_with_a_savepoint_for_each_job_but_the_first(
    store: Store,
) -> None:
    with counted(store) as asked, store.batch() as batch:
        for number in (1, 2, 3):
            with batch.savepoint() as tx:
                keep(tx, answer(number))
    savepoints = [text for text in asked.texts if text.startswith("SAVEPOINT")]
    assert (asked.writes, asked.reads, len(savepoints)) == (1, 0, 2)
    assert kept(store, 1, 2, 3) == [True, True, True]


def test_an_empty_batch_begins_no_transaction(store: Store) -> None:
    with counted(store) as asked, store.batch() as batch, batch.savepoint():
        pass
    assert (asked.writes, asked.reads) == (0, 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_failed_job_is_rolled_back_alone(store: Store, failing: int) -> None:
    with store.batch() as batch:
        for number in (1, 2, 3):
            with suppress(LookupError), batch.savepoint() as tx:
                keep(tx, answer(number))
                if number == failing:
                    fail()
    assert kept(store, 1, 2, 3) == [number != failing for number in (1, 2, 3)]


@pytest.mark.parametrize("before", [(), (1,)])
def test_a_failed_savepoint_within_a_job_leaves_the_rest_of_the_job(store: Store, before: tuple[int]) -> None:
    """The outer savepoint continues, whether or not something was written before."""
    with store.batch() as batch:
        for number in before:
            with batch.savepoint() as tx:
                keep(tx, answer(number))
        with batch.savepoint() as tx:
            with pytest.raises(LookupError), tx.savepoint() as inner:
                fail(inner.answers.save(answer(2)))
            tx.answers.save(answer(3))
            keep(tx, answer(4))
    assert kept(store, 1, 2, 3, 4) == [bool(before), False, True, True]


def test_a_job_around_a_failed_savepoint_is_still_rolled_back_alone(store: Store) -> None:
    def fail_twice() -> None:
        with batch.savepoint() as tx:
            with pytest.raises(LookupError), tx.savepoint() as inner:
                fail(inner.answers.save(answer(2)))
            fail(tx.answers.save(answer(3)))

    with store.batch() as batch:
        with batch.savepoint() as tx:
            keep(tx, answer(1))
        with pytest.raises(LookupError):
            fail_twice()
        with batch.savepoint() as tx:
            keep(tx, answer(4))
    assert kept(store, 1, 2, 3, 4) == [True, False, False, True]


def writers_are_locked_out(url: str) -> bool:
    """Return whether another connection can take the lock that every writer takes first."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(url).database), timeout=0)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False
    with psycopg.connect(url) as other:
        try:
            other.execute("SELECT number FROM meta FOR UPDATE NOWAIT")
        except psycopg.errors.LockNotAvailable:
            return True
        return False


@pytest.mark.parametrize("writes", [False, True])
def test_a_failed_nested_savepoint_keeps_the_lock_of_its_job(
    store_at_url: Store, url: str, *, writes: bool
) -> None:
    def fail_in_savepoint(tx: Transaction) -> None:
        with tx.savepoint() as inner:
            assert inner.answers.find("a caller", "an unused key") is None
            if writes:
                inner.answers.save(answer(1))
            fail()

    with store_at_url.batch() as batch, batch.savepoint() as tx:
        tx.lock()
        with pytest.raises(LookupError):
            fail_in_savepoint(tx)
        assert writers_are_locked_out(url)
        keep(tx, answer(2))
    assert kept(store_at_url, 1, 2) == [False, True]


def test_a_refusal_of_the_database_undoes_its_part_alone(store: Store) -> None:
    with store.batch() as batch:
        for number, status in ((1, 200), (2, None), (3, 200)):
            with suppress(Conflict), batch.savepoint() as tx:
                keep(tx, answer(number, status=status))
    assert kept(store, 1, 2, 3) == [True, False, True]


def test_after_commit_effects_run_once_and_never_for_rolled_back_jobs(store: Store) -> None:
    happened: list[str] = []

    def note(what: str) -> Callable[[], None]:
        return lambda: happened.append(what)

    with store.batch() as batch:
        with batch.savepoint() as tx:
            keep(tx, answer(1))
            tx.after_commit(note("1 saved"), undone=note("1 undone"))
        with pytest.raises(LookupError), batch.savepoint() as tx:
            fail(tx.after_commit(note("2 saved"), undone=note("2 undone")))
        assert happened == ["2 undone"]
    assert happened == ["2 undone", "1 saved"]


def test_listeners_get_the_committed_changes_with_their_numbers(store: Store) -> None:
    told: list[Saved] = []
    store.saved = told.append
    with store.batch() as batch:
        with batch.savepoint() as tx:
            save(tx, machines=[machine("web-0")])
        with pytest.raises(LookupError), batch.savepoint() as tx:
            fail(save(tx, machines=[machine("web-1")]))
        with batch.savepoint() as tx:
            save(tx, machines=[machine("web-2")])
    ((first, second),) = told
    assert [each.name for part in (first, second) for each in part.changes.machines] == ["web-0", "web-2"]
    assert (first.before, first.number) == (0, second.before)


def test_a_failed_commit_rolls_back_the_batch(store: Store) -> None:
    happened: list[str] = []
    store.saved = fail

    def save_and_fail() -> None:
        with store.batch() as batch:
            with batch.savepoint() as tx:
                keep(tx, answer(1))
                tx.after_commit(fail, undone=lambda: happened.append("undone"))
            event.listen(store.engines.writing, "commit", refuse, once=True)

    def refuse(_: Any) -> None:
        raise Unavailable("the disk is full")

    with pytest.raises(Unavailable, match="the disk is full"):
        save_and_fail()
    assert happened == ["undone"]
    assert kept(store, 1) == [False]


def test_a_connection_lost_during_the_commit_makes_it_uncertain(store: Store) -> None:
    told: list[Saved] = []
    store.saved = told.append

    def save_and_lose() -> None:
        with store.batch() as batch, batch.savepoint() as tx:
            keep(tx, answer(1))
            event.listen(store.engines.writing, "commit", lose, once=True)

    def lose(connection: Any) -> None:
        connection.invalidate()
        raise Unavailable("the connection was lost")

    with pytest.raises(Uncertain, match="it may still happen"):
        save_and_lose()
    assert told == [None]
    keep(store, answer(2))
    assert kept(store, 2) == [True]


def lose_connection(tx: Transaction) -> None:
    tx.answers.save(answer(2))
    tx.transaction.connection.invalidate()
    raise Unavailable("the connection was lost")


def test_a_connection_lost_before_the_commit_fails_the_whole_batch(store: Store) -> None:
    """Earlier writes are lost with the connection, and later ones depend on them."""

    def save_and_lose() -> None:
        with store.batch() as batch:
            with batch.savepoint() as tx:
                keep(tx, answer(1))
            with pytest.raises(Unavailable), batch.savepoint() as tx:
                lose_connection(tx)
            with (
                pytest.raises(Unavailable, match="connection to the database was lost"),
                batch.savepoint() as tx,
            ):
                keep(tx, answer(3))

    with pytest.raises(Unavailable, match="connection to the database was lost") as refused:
        save_and_lose()
    assert not isinstance(refused.value, Uncertain)
    assert kept(store, 1, 2, 3) == [False, False, False]


def test_a_connection_lost_in_the_first_job_is_noticed_by_the_next(store: Store) -> None:
    with store.batch() as batch:
        with pytest.raises(Unavailable), batch.savepoint() as tx:
            lose_connection(tx)
        with batch.savepoint() as tx:
            keep(tx, answer(1))
    assert kept(store, 1) == [True]


def test_after_commit_effects_run_even_if_a_listener_raises(store: Store) -> None:
    happened: list[str] = []
    store.saved = fail

    def save_and_follow() -> None:
        with writing(store) as tx:
            save(tx, machines=(machine("web-0"),))
            tx.after_commit(lambda: happened.append("followed"))

    with pytest.raises(LookupError):
        save_and_follow()
    assert happened == ["followed"]
