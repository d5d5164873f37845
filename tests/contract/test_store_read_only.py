"""Snapshots cannot write: the port has no way to, and the database refuses what a slip would do."""

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
    """Write where something is only to be read."""
    with store.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"
        snapshot.transaction.connection.execute(update(tables.meta), {"lineage": "OTHER"})


def test_a_slip_in_a_read_is_refused_by_the_database(store: Store) -> None:
    with pytest.raises(ForewarnError):
        slip(store)
    with store.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"


def test_a_slip_is_refused_in_memory_too_and_writing_goes_on(memory: Store) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable):
            slip(memory)
        with writing(memory) as tx:
            tx.time.set_reached(START)
    with memory.read() as snapshot:
        assert (snapshot.feed.lineage(), snapshot.time.reached()) == ("LINEAGE", START)


def test_what_was_answered_is_read(store: Store) -> None:
    with writing(store) as tx:
        tx.time.set_reached(START)
    with store.read() as snapshot:
        assert snapshot.time.reached() == START
