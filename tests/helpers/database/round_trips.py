"""Count the round trips between a store and its PostgreSQL in the wire protocol."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from forewarn.store.store import Store
from tests.helpers.database.statements import listening

# The server sends this message when it has answered everything it received.
_ANSWERED = "\tReadyForQuery\t"


class RoundTrips:
    """The number of round trips, set at the end of the block."""

    count = 0


@contextmanager
def counted_trips(store: Store) -> Iterator[RoundTrips]:
    """Count the round trips of the write transactions in the block."""
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
