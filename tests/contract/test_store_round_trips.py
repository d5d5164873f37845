"""Statements that can be sent together cost one round trip, and a failure leaves nothing half saved."""

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
from tests.contract.test_store_prefetch import CALLS, announce, save_three
from tests.helpers.database.round_trips import counted_trips
from tests.helpers.database.statements import counted
from tests.helpers.database.transactions import holding

NOTHING = answer(9, status=None)  # which no database accepts


@pytest.fixture
def postgresql(emptied_postgres_url: str) -> Iterator[Store]:
    opened = open_store(emptied_postgres_url, new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@contextmanager
def postponing(store: Store) -> Iterator[Batch]:
    """Postpone the writes of the block to its end."""
    with store.batch() as batch:
        batch.prefetch([])
        yield batch


def save_several(store: Store, *answers: SavedAnswer) -> None:
    """Write to three tables: records, responses, and the metadata of the batch."""
    with postponing(store) as batch, batch.savepoint() as tx:
        tx.changes.save(Changes(now=NOW, records=(record(1),)))
        for each in answers or [answer(1), answer(2)]:
            tx.answers.save(each)


def before_answers(store: Store, act: Callable[[psycopg.Connection[Any]], None]) -> None:
    """Do something after statements were sent and before their results arrive."""

    @event.listens_for(store.engines.writing, "before_cursor_execute")
    def look(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO answers"):
            driver: Any = connection.connection.driver_connection
            assert driver.info.pipeline_status == PipelineStatus.ON
            act(driver)


def is_empty(store: Store) -> bool:
    return everything(store).number == 0 and find(store, answer(1)) is None


def backend(store: Store) -> int:
    """Return the server process of the connection that writes, with an empty pipeline."""
    with store.engines.writing.begin() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.info.pipeline_status == PipelineStatus.OFF
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


# Number of round trips


def test_an_order_takes_four_round_trips_and_its_statements_are_counted(postgresql: Store) -> None:
    """The lock with lookups by name, the loads that depend on these, all writes, and the commit."""
    save_three(postgresql)
    order_one(postgresql, "web-0", 1)  # from then on, the columns of queries are known
    with counted(postgresql) as asked, counted_trips(postgresql) as trips:
        order_one(postgresql, "db-0", 2)
    assert trips.count == 4
    assert len(asked) == len(set(asked.texts)) > 10


def order_one(store: Store, name: str, number: int) -> None:
    with store.batch() as batch:
        batch.prefetch([call for call in CALLS if call.machine == name])
        with batch.savepoint() as tx:
            announce(tx, name, number)


def test_the_first_statement_begins_the_transaction(postgresql: Store) -> None:
    with counted_trips(postgresql) as trips:
        keep(postgresql, answer(1))
    assert trips.count == 3  # the lock, the response, the commit


def test_several_tables_are_written_in_one_round_trip(postgresql: Store) -> None:
    with counted_trips(postgresql) as trips, postponing(postgresql) as batch, batch.savepoint() as tx:
        keep(tx, answer(1))
    with counted_trips(postgresql) as more, postponing(postgresql) as batch, batch.savepoint() as tx:
        tx.answers.save(answer(2))
        tx.answers.save(answer(3))
        tx.changes.save(Changes(now=NOW, records=(record(1),)))
    assert (trips.count, more.count) == (3, 3)  # the lock, the writes, the commit


def test_concurrent_queries_return_the_same_rows_as_separate_ones(store: Store) -> None:
    save_three(store)
    queries = [select(table) for table in (tables.machines, tables.orders, tables.meta, tables.groups)]
    with store.engines.writing.begin() as connection:
        alone = [connection.execute(query).all() for query in queries]
        for _ in range(2):  # their columns are known then
            assert read_at_once(connection, [(query, None) for query in queries]) == alone
    assert all(alone)


# Failures


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_refused_row_rolls_back_all_and_keeps_the_connection(postgresql: Store, place: int) -> None:
    process, rows = backend(postgresql), [answer(1), answer(2)]
    rows.insert(place, NOTHING)
    with pytest.raises(Conflict):
        save_several(postgresql, *rows)
    assert is_empty(postgresql)
    assert backend(postgresql) == process
    save_several(postgresql)
    assert everything(postgresql).number == 1


def test_a_value_that_cannot_be_sent_rolls_back_all_and_keeps_the_connection(postgresql: Store) -> None:
    process = backend(postgresql)
    with pytest.raises(Invalid, match="cannot store this value"):
        save_several(postgresql, answer(1), answer(2, salt="\ud800"))
    assert is_empty(postgresql)
    assert backend(postgresql) == process


def test_the_error_is_that_of_the_failed_statement_and_not_of_later_ones() -> None:
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


def test_a_job_with_refused_rows_is_rolled_back_alone_any_number_of_times(store: Store) -> None:
    """More often than the driver needs to prepare a statement: it must know which ones exist."""
    for number in range(12):
        with postponing(store) as batch:
            with batch.savepoint() as tx:
                keep(tx, answer(10 + number))
            with suppress(Conflict), batch.savepoint() as tx:
                tx.answers.save(NOTHING)
                tx.changes.save(Changes(now=NOW, records=(record(2 * number + 1),)))
                tx.answers.old(NOW, limit=1)  # so that they are written
            with batch.savepoint() as tx:
                tx.changes.save(Changes(now=NOW, records=(record(2 * number + 2),)))
                tx.answers.old(NOW, limit=1)
    kept = [find(store, answer(10 + number)) is not None for number in range(12)]
    assert (kept, everything(store).number) == ([True] * 12, 24)


def test_one_of_several_groups_changed_by_another_process_rolls_back_all(store: Store) -> None:
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
    with pytest.raises(Conflict, match="another call changed a group: try again"):
        save_over()
    assert everything(store) == before
    announce(store, "db-0", 2)


def test_a_lock_timeout_is_reported_and_keeps_the_connection(emptied_postgres_url: str) -> None:
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


def test_a_connection_lost_in_the_middle_rolls_back_all(postgresql: Store, emptied_postgres_url: str) -> None:
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


def test_a_database_that_stops_answering_in_the_middle_times_out(
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
