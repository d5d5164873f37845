"""What can be sent together is waited for once; whatever fails then, nothing is half saved."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from psycopg.errors import PipelineAborted, UniqueViolation
from psycopg.pq import PipelineStatus
from sqlalchemy import Connection, event, select, update

from forewarn.core.errors import Conflict, Invalid, Unavailable, Uncertain
from forewarn.core.model.changes import Changes
from forewarn.store import tables
from forewarn.store.batch import Batch
from forewarn.store.opening import deadlines
from forewarn.store.opening.pipelined_postgresql import pipelined
from forewarn.store.queries.callers import SavedAnswer
from forewarn.store.round_trips import read_at_once
from forewarn.store.store import Store, open_store
from tests.contract.samples import NOW, everything, record
from tests.contract.test_store_answers import answer, find, keep
from tests.contract.test_store_failures import cut_off
from tests.contract.test_store_foreseen import CALLS, announce, save_three
from tests.helpers.database.round_trips import counted_trips
from tests.helpers.database.statements import counted
from tests.helpers.database.transactions import holding

NOTHING = answer(9, status=None)  # which no database takes


@pytest.fixture
def postgresql(emptied_postgres_url: str) -> Iterator[Store]:
    opened = open_store(emptied_postgres_url, new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@contextmanager
def postponing(store: Store) -> Iterator[Batch]:
    """Save what is saved in the block at its end."""
    with store.batch() as batch:
        batch.prefetch([])
        yield batch


def save_several(store: Store, *answers: SavedAnswer) -> None:
    """Write to three tables: records, answers, and what is kept of the store as a batch."""
    with postponing(store) as batch, batch.savepoint() as tx:
        tx.changes.save(Changes(now=NOW, records=(record(1),)))
        for each in answers or [answer(1), answer(2)]:
            tx.answers.save(each)


def before_answers(store: Store, act: Callable[[psycopg.Connection[Any]], None]) -> None:
    """Have something happen when statements were sent, others are to follow, and none was waited for."""

    @event.listens_for(store.engines.writing, "before_cursor_execute")
    def look(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO answers"):
            driver: Any = connection.connection.driver_connection
            assert driver.info.pipeline_status == PipelineStatus.ON
            act(driver)


def is_empty(store: Store) -> bool:
    return everything(store).number == 0 and find(store, answer(1)) is None


def backend(store: Store) -> int:
    """Return which process of the server the connection that writes has; none is left in a pipeline."""
    with store.engines.writing.begin() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.info.pipeline_status == PipelineStatus.OFF
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


# How often it is waited for


def test_an_order_takes_four_round_trips_and_its_statements_are_counted_as_ever(postgresql: Store) -> None:
    """The lock and what is found by names, what belongs to that, all that is written, the commit."""
    save_three(postgresql)
    order_one(postgresql, "web-0", 1)  # from then on the columns of queries are known
    with counted(postgresql) as asked, counted_trips(postgresql) as trips:
        order_one(postgresql, "db-0", 2)
    assert trips.count == 4
    assert len(asked) == len(set(asked.texts)) > 10


def order_one(store: Store, name: str, number: int) -> None:
    with store.batch() as batch:
        batch.prefetch([call for call in CALLS if call.machine == name])
        with batch.savepoint() as tx:
            announce(tx, name, number)


def test_a_transaction_is_begun_by_its_first_statement(postgresql: Store) -> None:
    with counted_trips(postgresql) as trips:
        keep(postgresql, answer(1))
    assert trips.count == 3  # the lock, the answer, the commit


def test_several_tables_are_written_in_one_round_trip(postgresql: Store) -> None:
    with counted_trips(postgresql) as trips, postponing(postgresql) as batch, batch.savepoint() as tx:
        keep(tx, answer(1))
    with counted_trips(postgresql) as more, postponing(postgresql) as batch, batch.savepoint() as tx:
        tx.answers.save(answer(2))
        tx.answers.save(answer(3))
        tx.changes.save(Changes(now=NOW, records=(record(1),)))
    assert (trips.count, more.count) == (3, 3)  # the lock, what is written, the commit


def test_queries_that_are_asked_at_once_have_the_rows_that_each_has_alone(store: Store) -> None:
    save_three(store)
    queries = [select(table) for table in (tables.machines, tables.orders, tables.meta, tables.groups)]
    with store.engines.writing.begin() as connection:
        alone = [connection.execute(query).all() for query in queries]
        for _ in range(2):  # then their columns are known beforehand
            assert read_at_once(connection, [(query, None) for query in queries]) == alone
    assert all(alone)


# What fails


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_row_that_is_refused_undoes_all_and_leaves_the_connection(postgresql: Store, place: int) -> None:
    process, rows = backend(postgresql), [answer(1), answer(2)]
    rows.insert(place, NOTHING)
    with pytest.raises(Conflict):
        save_several(postgresql, *rows)
    assert is_empty(postgresql)
    assert backend(postgresql) == process
    save_several(postgresql)
    assert everything(postgresql).number == 1


def test_a_value_that_cannot_be_sent_undoes_all_and_leaves_the_connection(postgresql: Store) -> None:
    process = backend(postgresql)
    with pytest.raises(Invalid, match="cannot keep such a value"):
        save_several(postgresql, answer(1), answer(2, salt="\ud800"))
    assert is_empty(postgresql)
    assert backend(postgresql) == process


def test_what_comes_after_a_statement_that_fails_is_not_told_instead_of_it() -> None:
    class Failing:
        @contextmanager
        def pipeline(self) -> Iterator[None]:
            yield
            try:
                raise UniqueViolation
            finally:
                raise PipelineAborted

    connection: Any = Failing()
    with pytest.raises(UniqueViolation), pipelined(connection):
        pass


def test_a_part_whose_rows_are_refused_is_undone_alone_however_often(store: Store) -> None:
    """More often than it takes until the driver prepares a statement: it must know which ones it has."""
    for number in range(12):
        with postponing(store) as batch:
            with batch.savepoint() as tx:
                keep(tx, answer(10 + number))
            with suppress(Conflict), batch.savepoint() as tx:
                tx.answers.save(NOTHING)
                tx.changes.save(Changes(now=NOW, records=(record(2 * number + 1),)))
                tx.answers.old(NOW, limit=1)  # for which they are written
            with batch.savepoint() as tx:
                tx.changes.save(Changes(now=NOW, records=(record(2 * number + 2),)))
                tx.answers.old(NOW, limit=1)
    kept = [find(store, answer(10 + number)) is not None for number in range(12)]
    assert (kept, everything(store).number) == ([True] * 12, 24)


def test_one_of_several_groups_that_somebody_else_has_changed_undoes_all(store: Store) -> None:
    def save_over() -> None:
        with store.batch() as batch:
            batch.prefetch(CALLS)
            with batch.savepoint() as tx:
                stale = update(tables.groups).where(tables.groups.c.name == "web").values(version=99)
                tx.transaction.connection.execute(stale)
            for number, name in ((1, "web-0"), (2, "db-0")):
                with batch.savepoint() as tx:
                    announce(tx, name, number)

    save_three(store)
    before = everything(store)
    with pytest.raises(Conflict, match="a group was changed by somebody else: try again"):
        save_over()
    assert everything(store) == before
    announce(store, "db-0", 2)


def test_a_lock_that_is_not_got_is_told_and_leaves_the_connection(emptied_postgres_url: str) -> None:
    impatient = open_store(f"{emptied_postgres_url}&options=-c%20lock_timeout%3D1", new_id=lambda: "LINEAGE")
    process = backend(impatient)
    other = open_store(emptied_postgres_url, new_id=lambda: "LINEAGE")

    def prefetch() -> None:
        with impatient.batch() as batch:
            batch.prefetch(CALLS)

    with holding(other), pytest.raises(Unavailable, match="is being written by another process: try again"):
        prefetch()
    assert backend(impatient) == process
    prefetch()
    impatient.close()
    other.close()


def test_a_connection_that_is_cut_in_the_middle_undoes_all(
    postgresql: Store, emptied_postgres_url: str
) -> None:
    urls = [emptied_postgres_url]

    def cut(_: object) -> None:
        if urls:
            cut_off(urls.pop())

    before_answers(postgresql, cut)
    with pytest.raises(Unavailable, match="check that it is up") as refused:
        save_several(postgresql)
    assert not isinstance(refused.value, Uncertain)
    assert is_empty(postgresql)
    save_several(postgresql)
    assert everything(postgresql).number == 1


def test_a_database_that_falls_silent_in_the_middle_is_given_up(
    postgresql: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "SILENT_AFTER", 0.2)
    monkeypatch.setattr(deadlines, "LONGEST_STATEMENT", 0.2)
    stopped: list[int] = []

    def stop(connection: psycopg.Connection[Any]) -> None:
        postgresql.serve()
        stopped.append(connection.info.backend_pid)
        os.kill(stopped[0], signal.SIGSTOP)

    before_answers(postgresql, stop)
    try:
        with pytest.raises(Unavailable, match="takes too long") as refused:
            save_several(postgresql)
    finally:
        postgresql.deadlines.disarm()
        for process in stopped:
            os.kill(process, signal.SIGCONT)
    assert not isinstance(refused.value, Uncertain)
    assert is_empty(postgresql)
