"""psycopg's pipeline mode: statements that belong together are sent without waiting in between.

BEGIN goes with the first statement of a transaction. The statements of a `RoundTrip` go together. All of it
happens within a call of SQLAlchemy, which handles failures as for any statement.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.errors import PipelineAborted
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultExecutionContext

from forewarn.store.round_trips import ROUND_TRIP, RoundTrip

Cursor = psycopg.Cursor[Any]
Send = Callable[[Cursor], object]


class CachedColumnsCursor(Cursor):
    """A cursor that knows its columns before the answer: SQLAlchemy needs them at once."""

    cached_columns: list[psycopg.Column] | None = None

    @property
    def description(self) -> list[psycopg.Column] | None:
        """Return the columns."""
        return super().description or self.cached_columns


def pipeline(engine: Engine, *, begin: str) -> None:
    """Make an engine pipeline its statements; its connections must not begin transactions themselves."""
    sending = _Sending(begin)

    @event.listens_for(engine, "connect")
    def prepare(connection: psycopg.Connection[Any], _entry: Any) -> None:
        connection.cursor_factory = CachedColumnsCursor

    event.listen(engine, "do_execute", sending.execute)
    event.listen(engine, "do_executemany", sending.execute_many)
    event.listen(engine, "do_execute_no_params", sending.execute_plain)


class _Sending:
    """Executes statements for an engine; each method returns whether it has executed the statement."""

    def __init__(self, begin: str) -> None:
        self._begin = begin
        self._columns: dict[str, list[psycopg.Column] | None] = {}  # by query, from earlier answers

    def execute(self, cursor: Cursor, statement: str, values: Any, context: DefaultExecutionContext) -> bool:
        return self._send(cursor, statement, context, lambda on: on.execute(statement, values))

    def execute_many(
        self, cursor: Cursor, statement: str, rows: Sequence[Any], context: DefaultExecutionContext
    ) -> bool:
        return self._send(cursor, statement, context, lambda on: on.executemany(statement, rows))

    def execute_plain(self, cursor: Cursor, statement: str, context: DefaultExecutionContext) -> bool:
        return self._send(cursor, statement, context, lambda on: on.execute(statement))

    def _send(self, cursor: Cursor, statement: str, context: DefaultExecutionContext, send: Send) -> bool:
        connection = cursor.connection
        begun = _in_transaction(connection)
        if not isinstance(
            cursor, CachedColumnsCursor
        ):  # a server-side cursor, which pipelines do not support
            if not begun:
                connection.execute(self._begin)
            return False
        trip = _trip(context)
        if trip is not None and (trip.left or _in_pipeline(connection)):
            self._send_in_trip(trip, cursor, statement, context, send)
            return True
        if begun:
            return False
        with pipelined(connection):
            connection.execute(self._begin)
            send(cursor)
        return True

    def _send_in_trip(
        self,
        trip: RoundTrip,
        cursor: CachedColumnsCursor,
        statement: str,
        context: DefaultExecutionContext,
        send: Send,
    ) -> None:
        self._enter_pipeline(trip, cursor.connection)
        if context.is_crud:
            # SQLAlchemy closes its own cursor before the answer with the row count arrives.
            own = cursor.connection.cursor()
            trip.written.append(own)
            send(own)
            waits = not trip.left
        else:
            cursor.cached_columns = self._columns.get(statement)
            send(cursor)
            waits = not trip.left or cursor.cached_columns is None
        if waits:
            trip.until_answered.close()
        if not context.is_crud and cursor.cached_columns is None:
            self._columns[statement] = cursor.description

    def _enter_pipeline(self, trip: RoundTrip, connection: psycopg.Connection[Any]) -> None:
        if _in_pipeline(connection):
            return
        begun = _in_transaction(connection)
        trip.until_answered.enter_context(pipelined(connection))
        if not begun:
            connection.execute(self._begin)


def _trip(context: DefaultExecutionContext) -> RoundTrip | None:
    """Return the round trip of a statement, if it may be pipelined.

    After a failure, psycopg treats the statements behind the failed one as prepared, until the whole
    transaction is rolled back. A savepoint rolls back only a part, so within one each statement is awaited.
    """
    trip: RoundTrip | None = context.execution_options.get(ROUND_TRIP)
    return None if context.root_connection.in_nested_transaction() else trip


def _in_pipeline(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


def _in_transaction(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.transaction_status != TransactionStatus.IDLE


@contextmanager
def pipelined(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Send the statements of the block, and wait for the answers at its end."""
    try:
        with connection.pipeline():
            yield
    except PipelineAborted as error:
        # The statements behind a failed one fail too. psycopg raises the last failure; the cause is the
        # first.
        first: BaseException = error
        while isinstance(first, PipelineAborted) and first.__context__ is not None:
            first = first.__context__
        raise first from None
