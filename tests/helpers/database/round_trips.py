"""Counting how often a store waits for its PostgreSQL, by what goes over the wire."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from forewarn.store.store import Store
from tests.helpers.database.statements import listening

# The server says so once all that it was sent so far is answered.
_ANSWERED = "\tReadyForQuery\t"


class RoundTrips:
    """How many there were, once they are counted."""

    count = 0


@contextmanager
def counted_trips(store: Store) -> Iterator[RoundTrips]:
    """Count the round trips of transactions that are begun and ended within the block, and may write."""
    trips, writing = RoundTrips(), store.engines.writing
    with tempfile.TemporaryFile("w+") as file:

        def trace(connection: psycopg.Connection[Any], *_: Any) -> None:
            connection.pgconn.trace(file.fileno())

        def untrace(connection: psycopg.Connection[Any] | None, *_: Any) -> None:
            if connection is not None:
                connection.pgconn.untrace()

        with listening([(writing, "checkout", trace), (writing, "checkin", untrace)]):
            yield trips
        file.seek(0)
        trips.count = file.read().count(_ANSWERED)
