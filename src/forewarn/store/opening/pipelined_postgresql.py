"""PostgreSQL is sent what belongs together without waiting in between: psycopg's pipeline mode.

With the first statement of a transaction goes its BEGIN, with the statements of a `Trip` go the others of it.
All of it happens inside a call of SQLAlchemy's, so that failures are told as those of any statement are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.errors import PipelineAborted
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultExecutionContext

from forewarn.store.round_trips import TRIP, Trip

Cursor = psycopg.Cursor[Any]
Send = Callable[[Cursor], object]


class ForetoldCursor(Cursor):
    """A cursor that knows its columns before it is answered: SQLAlchemy asks for them at once."""

    foretold: list[psycopg.Column] | None = None

    @property
    def description(self) -> list[psycopg.Column] | None:
        """The columns."""
        return super().description or self.foretold


def pipeline(engine: Engine, *, begin: str) -> None:
    """Have an engine pipeline its statements; its connections must begin no transaction by themselves."""
    sending = _Sending(begin)

    @event.listens_for(engine, "connect")
    def prepare(connection: psycopg.Connection[Any], _entry: Any) -> None:
        connection.cursor_factory = ForetoldCursor

    event.listen(engine, "do_execute", sending.execute)
    event.listen(engine, "do_executemany", sending.execute_many)
    event.listen(engine, "do_execute_no_params", sending.execute_plain)


class _Sending:
    """What an engine does instead of executing a statement; each returns whether that is done."""

    def __init__(self, begin: str) -> None:
        self._begin = begin
        self._columns: dict[str, list[psycopg.Column] | None] = {}  # of queries that were answered before

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
        if not isinstance(cursor, ForetoldCursor):  # one of the server's, which no pipeline takes
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
        self, trip: Trip, cursor: ForetoldCursor, statement: str, context: DefaultExecutionContext, send: Send
    ) -> None:
        self._enter_pipeline(trip, cursor.connection)
        if context.is_crud:
            # SQLAlchemy closes its own cursor before the answer is there, which counts the rows.
            own = cursor.connection.cursor()
            trip.written.append(own)
            send(own)
            waits = not trip.left
        else:
            cursor.foretold = self._columns.get(statement)
            send(cursor)
            waits = not trip.left or cursor.foretold is None
        if waits:
            trip.until_answered.close()
        if not context.is_crud and cursor.foretold is None:
            self._columns[statement] = cursor.description

    def _enter_pipeline(self, trip: Trip, connection: psycopg.Connection[Any]) -> None:
        if _in_pipeline(connection):
            return
        begun = _in_transaction(connection)
        trip.until_answered.enter_context(pipelined(connection))
        if not begun:
            connection.execute(self._begin)


def _trip(context: DefaultExecutionContext) -> Trip | None:
    """Return the trip that a statement is to be sent with.

    After a failure psycopg takes statements for prepared that it has sent behind the one that failed, until
    the whole transaction is rolled back. Within a savepoint less is, so there each is waited for.
    """
    trip: Trip | None = context.execution_options.get(TRIP)
    return None if context.root_connection.in_nested_transaction() else trip


def _in_pipeline(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


def _in_transaction(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.transaction_status != TransactionStatus.IDLE


@contextmanager
def pipelined(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Send what is executed in the block, and wait for the answers at its end."""
    try:
        with connection.pipeline():
            yield
    except PipelineAborted as error:
        # What follows a statement that fails is told so. psycopg raises the last that it was told, which is
        # another than the first if more than one answer has come by then.
        first: BaseException = error
        while isinstance(first, PipelineAborted) and first.__context__ is not None:
            first = first.__context__
        raise first from None
