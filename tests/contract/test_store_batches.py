"""What every store must do: save a batch as a whole, and undo alone what fails in it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import event

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


def test_what_is_saved_together_is_one_transaction_with_a_savepoint_for_each_but_the_first(
    store: Store,
) -> None:
    with counted(store) as asked, store.batch() as batch:
        for number in (1, 2, 3):
            with batch.savepoint() as tx:
                keep(tx, answer(number))
    savepoints = [text for text in asked.texts if text.startswith("SAVEPOINT")]
    assert (asked.writes, asked.reads, len(savepoints)) == (1, 0, 2)
    assert kept(store, 1, 2, 3) == [True, True, True]


def test_no_transaction_is_begun_for_nothing(store: Store) -> None:
    with counted(store) as asked, store.batch() as batch, batch.savepoint():
        pass
    assert (asked.writes, asked.reads) == (0, 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_part_that_fails_is_undone_alone(store: Store, failing: int) -> None:
    with store.batch() as batch:
        for number in (1, 2, 3):
            with suppress(LookupError), batch.savepoint() as tx:
                keep(tx, answer(number))
                if number == failing:
                    fail()
    assert kept(store, 1, 2, 3) == [number != failing for number in (1, 2, 3)]


@pytest.mark.parametrize("before", [(), (1,)])
def test_a_part_within_a_part_that_fails_leaves_the_rest_of_it(store: Store, before: tuple[int]) -> None:
    """The transaction around it goes on, whether or not something was written before."""
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


def test_a_part_around_a_failed_one_is_still_undone_alone(store: Store) -> None:
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


def test_a_refusal_of_the_database_undoes_its_part_alone(store: Store) -> None:
    with store.batch() as batch:
        for number, status in ((1, 200), (2, None), (3, 200)):
            with suppress(Conflict), batch.savepoint() as tx:
                keep(tx, answer(number, status=status))
    assert kept(store, 1, 2, 3) == [True, False, True]


def test_what_follows_happens_once_all_is_saved_and_never_for_what_is_undone(store: Store) -> None:
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


def test_those_who_follow_are_told_what_was_saved_and_with_which_numbers(store: Store) -> None:
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


def test_a_commit_that_fails_undoes_all(store: Store) -> None:
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


def test_a_connection_that_is_lost_while_it_is_saved_leaves_it_open_whether_it_was(store: Store) -> None:
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


def test_a_connection_that_is_lost_before_all_is_saved_refuses_all_of_it(store: Store) -> None:
    """What was written before is gone with it, and what comes after cannot be saved without that."""

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


def test_a_connection_that_is_lost_with_the_first_part_is_not_missed_by_the_next(store: Store) -> None:
    with store.batch() as batch:
        with pytest.raises(Unavailable), batch.savepoint() as tx:
            lose_connection(tx)
        with batch.savepoint() as tx:
            keep(tx, answer(1))
    assert kept(store, 1) == [True]


def test_what_follows_happens_whatever_those_make_of_it_who_are_told(store: Store) -> None:
    happened: list[str] = []
    store.saved = fail

    def save_and_follow() -> None:
        with writing(store) as tx:
            save(tx, machines=(machine("web-0"),))
            tx.after_commit(lambda: happened.append("followed"))

    with pytest.raises(LookupError):
        save_and_follow()
    assert happened == ["followed"]
