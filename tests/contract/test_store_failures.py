"""Failures of the database: all or nothing is saved, the message helps, and the store recovers."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import Connection, event

from forewarn.core.errors import Invalid, Unavailable, Uncertain
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.changes import Changes
from forewarn.store.batch import Transaction
from forewarn.store.opening import database, deadlines
from forewarn.store.store import Store, open_store
from tests.contract.samples import NOW, everything, group, machine, record, save, save_fleet
from tests.helpers.database.transactions import holding, writing
from tests.helpers.programs.process import until


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    opened = open_store(sqlite_url, new_id=lambda: "X")
    save_fleet(opened)
    yield opened
    opened.close()


def pragma(store: Store, text: str) -> None:
    """Set a pragma on the connection that writes."""
    with writing(store) as tx:
        tx.transaction.connection.exec_driver_sql(f"PRAGMA {text}")


def test_a_full_disk_is_unavailable_until_there_is_space(sqlite_store: Store) -> None:
    pragma(sqlite_store, "max_page_count = 1")  # the present number of pages
    many = tuple(record(number, reason="x" * 10_000) for number in range(2, 100))
    with pytest.raises(Unavailable, match="disk is full: free some space"):
        save(sqlite_store, records=many)
    assert everything(sqlite_store).number == 1
    pragma(sqlite_store, "max_page_count = 100000")
    assert save(sqlite_store, records=many) == 99


def test_a_read_only_database_is_unavailable_but_can_be_read(sqlite_store: Store) -> None:
    pragma(sqlite_store, "query_only = ON")
    with pytest.raises(Unavailable, match="cannot be written: check its permissions"):
        save(sqlite_store, machines=(machine("web-0"),))
    assert everything(sqlite_store).groups == {"web": group()}


def test_a_database_that_another_process_writes_is_unavailable(
    sqlite_store: Store, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0)
    impatient = open_store(sqlite_url, new_id=lambda: "X")
    with (
        holding(sqlite_store),
        pytest.raises(Unavailable, match="being written by another process"),
        holding(impatient),
    ):
        pass
    impatient.close()


def test_a_second_writer_waits_for_the_first(store: Store) -> None:
    begun = threading.Event()

    def write() -> None:
        begun.set()
        with writing(store) as tx:
            number = tx.rules.everything().number + 1
            tx.changes.save(Changes(now=NOW, records=(record(number, reason="second"),)))

    second = threading.Thread(target=write)
    with writing(store) as tx:
        tx.records.newest()  # blocks other writers
        second.start()
        begun.wait()
        tx.changes.save(Changes(now=NOW, records=(record(1, reason="first"),)))
    second.join()
    with store.read() as snapshot:
        assert [line.reason for line in snapshot.records.history(HistoryFilter())] == ["second", "first"]


def test_a_value_that_the_database_cannot_store_is_invalid(store: Store) -> None:
    save_fleet(store)
    with pytest.raises(Invalid, match="cannot store this value"):
        save(store, machines=(replace(machine("web-0"), size="\ud800"),))
    with pytest.raises(Invalid, match="cannot store this value"):
        save(store, machines=(replace(machine("web-0"), port=2**80),))
    assert everything(store).machines == {}


def cut_off(url: str) -> None:
    """Close every connection to a PostgreSQL database, as a restart would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "  # waits for its end
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_lost_connection_undoes_its_transaction_and_the_next_call_connects_again(postgres_url: str) -> None:
    opened = open_store(postgres_url, new_id=lambda: "X")

    def save_while_it_is_cut_off() -> None:
        with writing(opened) as tx:
            tx.changes.save(Changes(now=NOW, groups=(group(),)))
            cut_off(postgres_url)
            tx.time.set_reached(NOW)

    with pytest.raises(Unavailable, match="check that it is up"):
        save_while_it_is_cut_off()
    assert everything(opened).groups == {}
    save_fleet(opened)
    opened.close()


def test_a_connection_lost_while_idle_is_not_noticed(postgres_url: str) -> None:
    opened = open_store(postgres_url, new_id=lambda: "X")
    save_fleet(opened)
    cut_off(postgres_url)
    assert everything(opened).groups == {"web": group()}
    opened.close()


def test_a_database_that_does_not_exist_is_unavailable(postgres_url: str) -> None:
    with pytest.raises(Unavailable, match=r"nothing.* does not exist"):
        open_store(postgres_url.replace("/test_", "/nothing_"), new_id=lambda: "X")


def test_a_read_only_postgresql_is_unavailable(postgres_url: str) -> None:
    opened = open_store(postgres_url, new_id=lambda: "X")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    cut_off(postgres_url)
    with pytest.raises(Unavailable, match="read-only: connect to the primary"):
        save_fleet(opened)
    opened.close()


@pytest.fixture
def served(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a store that, once served, waits only briefly for answers of the database."""
    monkeypatch.setattr(deadlines, "SILENT_AFTER", 0.2)
    monkeypatch.setattr(deadlines, "LONGEST_STATEMENT", 0.2)
    opened = open_store(postgres_url, new_id=lambda: "X")
    yield opened
    opened.close()


class Stopped:
    """A stopped process of the database, whose kernel still acknowledges packets."""

    def __init__(self, store: Store, connection: Connection) -> None:
        (self._process,) = connection.exec_driver_sql("SELECT pg_backend_pid()").one()
        self._store = store
        store.serve()
        os.kill(self._process, signal.SIGSTOP)

    def go_on(self) -> None:
        self._store.deadlines.disarm()
        os.kill(self._process, signal.SIGCONT)


@contextmanager
def stopping(store: Store) -> Iterator[tuple[Transaction, list[Stopped]]]:
    """Stop the process of a transaction within the block."""
    stopped: list[Stopped] = []
    try:
        with writing(store) as tx:
            tx.changes.save(Changes(now=NOW, groups=(group(),)))
            yield tx, stopped
    finally:
        for each in stopped:
            each.go_on()


def test_a_transaction_is_rolled_back_if_the_database_stops_answering_before_the_commit(
    served: Store,
) -> None:
    def save_while_it_falls_silent() -> None:
        with stopping(served) as (tx, stopped):
            stopped.append(Stopped(served, tx.transaction.connection))
            tx.time.set_reached(NOW)

    with pytest.raises(Unavailable, match="takes too long") as refused:
        save_while_it_falls_silent()
    assert type(refused.value) is Unavailable
    assert everything(served).groups == {}
    save_fleet(served)


def test_an_unanswered_commit_is_uncertain_and_may_still_succeed(served: Store) -> None:
    def commit_while_it_falls_silent() -> None:
        with stopping(served) as (_, stopped):
            # After all writes, before the commit.
            event.listen(
                served.engines.writing,
                "commit",
                lambda connection: stopped.append(Stopped(served, connection)),
            )

    with pytest.raises(Uncertain, match="repeat it with the same Idempotency-Key"):
        commit_while_it_falls_silent()
    until(lambda: everything(served).groups == {"web": group()}, what="what was sent to be saved")


def test_a_locked_sqlite_delays_one_caller_and_is_retried_later(
    sqlite_store: Store, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "PROBE_EVERY", 0.01)
    sqlite_store.serve()
    pragma(sqlite_store, "busy_timeout = 0")
    other = open_store(sqlite_url, new_id=lambda: "Y")
    with holding(other):
        for _ in range(2):
            with pytest.raises(Unavailable, match="is being written by another process"):
                save_fleet(sqlite_store)
        assert sqlite_store.deadlines.silences == 1
        assert everything(sqlite_store).number == 1  # a read needs no lock
    until(lambda: sqlite_store.deadlines.trouble is None, what="the lock to be free")
    save(sqlite_store, records=(record(2),))
    other.close()
