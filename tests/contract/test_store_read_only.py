"""Snapshots cannot write: they have no method for it, and the database refuses accidental writes."""

import pytest
from sqlalchemy import update

from forewarn.core.errors import ForewarnError, Unavailable
from forewarn.store import tables
from forewarn.store.store import Store, open_store
from tests.helpers.database.transactions import writing
from tests.helpers.service.harness import START


@pytest.fixture
def memory() -> Store:
    return open_store("sqlite://", new_id=lambda: "LINEAGE")


def slip(store: Store) -> None:
    """Write within a read."""
    with store.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"
        snapshot.transaction.connection.execute(update(tables.meta), {"lineage": "OTHER"})


def test_the_database_refuses_a_write_within_a_read(store: Store) -> None:
    with pytest.raises(ForewarnError):
        slip(store)
    with store.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"


def test_a_write_within_a_read_is_refused_in_memory_too_and_later_writes_succeed(memory: Store) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable):
            slip(memory)
        with writing(memory) as tx:
            tx.time.set_reached(START)
    with memory.read() as snapshot:
        assert (snapshot.feed.lineage(), snapshot.time.reached()) == ("LINEAGE", START)


def test_a_read_sees_every_answered_write(store: Store) -> None:
    with writing(store) as tx:
        tx.time.set_reached(START)
    with store.read() as snapshot:
        assert snapshot.time.reached() == START
