"""A batch: one database transaction made of savepoints, which can be rolled back one by one.

The batch begins the database transaction at the first statement. It sends SAVEPOINT as late as possible:
before the next statement, and only if a rollback must keep earlier writes or the lock of the job around it.
Otherwise a rollback ends the whole transaction and drops postponed writes; the next statement begins another.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy import Transaction as DatabaseTransaction

from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import RETRY_ADVICE, ForewarnError, Unavailable, Uncertain
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store.prefetch import Prefetch, PrefetchedRows
from forewarn.store.queries.callers import (
    AnswerChanges,
    RehearsalChanges,
    RehearsalSaving,
    SessionChanges,
    TokenChanges,
    WebhookChanges,
)
from forewarn.store.queries.fleet import FleetFileChanges
from forewarn.store.queries.records import RecordChanges
from forewarn.store.queries.service_time import TimeChanges
from forewarn.store.reads.open_transaction import BatchState, OpenTransaction
from forewarn.store.reads.prefetching import load
from forewarn.store.rows.mapping import Columns
from forewarn.store.rows.stored import Meta
from forewarn.store.snapshots import ScopedSnapshot, Snapshot, SnapshotPart
from forewarn.store.writes.saving import ChangeSaving
from forewarn.store.writes.writer import PostponedWrites

log = logging.getLogger(__name__)

T = TypeVar("T")
Act: TypeAlias = Callable[[], None]

_BATCH = "forewarn.batch"  # key in the `info` of a connection: the batch that uses it
_LOST = "the connection to the database was lost while this call was saved together with others: try again"


@dataclass(slots=True)
class _Level:
    """The whole transaction, or a savepoint in it."""

    transaction: DatabaseTransaction | None = None  # None until a statement needs it
    meta: Meta | None = None  # at the start
    written: bool = False
    postponed: PostponedWrites = field(default_factory=PostponedWrites)
    blocks: int = 0  # `savepoint` blocks that share this level, one within the other

    def must_survive(self, state: BatchState) -> bool:
        """Return whether the rollback of a block that begins now must leave this level as it is."""
        job_holds_lock = self.blocks > 0 and self.transaction is not None
        meta_changed = state.unwritten and state.meta is not self.meta
        return self.written or bool(self.postponed) or job_holds_lock or meta_changed


@dataclass(slots=True)
class Batch:
    """One database transaction; used by one thread at a time."""

    connect: Callable[[], AbstractContextManager[Connection]]
    connection: Connection | None = None
    connecting: AbstractContextManager[Connection] | None = None  # closes the connection
    state: BatchState = field(default_factory=BatchState)
    _effects: list[tuple[Act, Act]] = field(default_factory=list)  # after the commit, after a rollback
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _broken: ForewarnError | None = None
    _closed: bool = False
    _internal: bool = False  # whether the batch itself runs statements

    def begin(self) -> Connection:
        """Return the connection, in a transaction."""
        if self._closed:
            raise RuntimeError("this transaction is used after the end of its batch")
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        if self.connection is None:
            self.connecting = self.connect()
            self.connection = self.connecting.__enter__()
            self.connection.info[_BATCH] = self
        if self._levels[0].transaction is None:
            self._levels[0].transaction = self._run(self.connection.begin)
        return self.connection

    def postpone(self, statement: Any, rows: Sequence[Columns]) -> None:
        """Write rows before the next statement, or before the commit."""
        self._levels[-1].postponed.add(statement, rows)

    def flush(self) -> None:
        """Begin all levels and write the postponed rows, because a statement is about to run."""
        for level in self._levels:
            if level.transaction is None and self.connection is not None:
                level.transaction = self.connection.begin_nested()
            if level.postponed and self.connection is not None:
                level.written = True
                try:
                    level.postponed.write(self.connection)
                except ForewarnError as error:
                    if level is not self._levels[-1]:
                        self._broken = error  # these rows are of savepoints that have already ended
                    raise

    def before_statement(self, *, writes: bool) -> None:
        """Note that a statement is about to run on the connection."""
        if not self._internal:
            self._run(self.flush)
            self._levels[-1].written |= writes

    def after_commit(self, act: Act, undone: Act) -> None:
        """Call `act` after the commit, or `undone` if this savepoint or the batch is rolled back."""
        if self._closed:
            raise RuntimeError("this transaction is used after the end of its batch")
        self._effects.append((act, undone))

    def prefetch(self, calls: Sequence[Prefetch]) -> None:
        """Load at once what the next jobs will ask for, and postpone their writes."""
        self.state.prefetched = load(self.begin(), calls, self.state)
        self.state.postpone = self.postpone

    def open(self, scope: Scope = EVERYTHING) -> OpenTransaction:
        """Open the transaction for a caller."""
        return OpenTransaction(self.begin, scope=scope, batch=self.state)

    @contextmanager
    def savepoint(self) -> Iterator["Transaction"]:
        """Open a transaction on everything; if the block raises, only the block is rolled back."""
        saved, effects, meta = len(self.state.saved), len(self._effects), self.state.meta
        level = self._levels[-1]
        nested = level.must_survive(self.state)
        if nested:
            level = _Level(meta=meta)
            self._levels.append(level)
        level.blocks += 1
        try:
            yield Transaction(self, self.open())
            if nested:
                self._release(level)
        except BaseException:
            self.state.meta, self.state.prefetched = meta, PrefetchedRows()
            self._roll_back(level)
            del self.state.saved[saved:]
            undone = self._effects[effects:]
            del self._effects[effects:]
            _perform(undo for _, undo in reversed(undone))
            raise
        finally:
            level.blocks -= 1
            if nested:
                self._levels.pop()

    def commit(self) -> None:
        """Commit; Uncertain if the connection was lost before the answer."""
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        transaction, connection = self._levels[0].transaction, self.connection
        if transaction is None or connection is None:
            return
        self.write_rest()
        try:
            transaction.commit()
        except ForewarnError as error:
            if connection.invalidated:
                raise Uncertain(f"{error}; {RETRY_ADVICE}") from error
            # For SQLAlchemy the transaction is over; for the database it may not be.
            connection.connection.rollback()
            raise

    def write_rest(self) -> None:
        """Write the row of the store as a whole and everything that is still postponed."""
        self.state.write_meta(self.postpone)
        self._run(self.flush)

    def close(self) -> None:
        """Return the connection; anything that was not committed is rolled back."""
        self._closed = True
        self._disconnect()

    def committed(self) -> None:
        """Run the effects of the commit."""
        _perform(act for act, _ in self._effects)

    def undone(self) -> None:
        """Run the effects of the rollback."""
        _perform(undo for _, undo in reversed(self._effects))

    def _release(self, level: _Level) -> None:
        if level.transaction is not None:
            self._run(level.transaction.commit)
        around = self._levels[-2]
        around.postponed.add_all(level.postponed)
        around.written |= level.written

    def _run(self, act: Callable[[], T]) -> T:
        """Run the batch's own statements, which flush nothing."""
        self._internal = True
        try:
            return act()
        finally:
            self._internal = False

    def _roll_back(self, level: _Level) -> None:
        transaction, level.transaction, level.written = level.transaction, None, False
        level.postponed = PostponedWrites()
        try:
            if level is self._levels[0]:
                # No block around this one has used the database yet.
                self._disconnect()
                self._broken = None
            elif transaction is not None:
                self._run(transaction.rollback)
        except ForewarnError as error:
            self._broken = error
        if self.connection is not None and self.connection.invalidated:
            # The earlier writes of the batch are lost too.
            self._broken = self._broken or Unavailable(_LOST)

    def _disconnect(self) -> None:
        connecting, connection = self.connecting, self.connection
        self.connecting = self.connection = self.state.meta = None
        self.state.prefetched = PrefetchedRows()
        if connecting is None or connection is None:
            return
        if not connection.invalidated:
            connection.info.pop(_BATCH, None)
        connecting.__exit__(None, None, None)  # rolls back


def _perform(acts: Iterable[Act]) -> None:
    for act in acts:
        try:
            act()
        except Exception:  # the commit stands, and the other effects still run
            log.exception("an effect of a commit failed")


def watch_statements(engine: Engine) -> None:
    """Notify batches of each statement on their connection."""

    @event.listens_for(engine, "before_cursor_execute")
    def note(
        connection: Connection, _cursor: Any, _statement: str, _rows: Any, context: Any, many: Any
    ) -> None:
        if (batch := connection.info.get(_BATCH)) is not None:
            # Only writes run with many rows.
            batch.before_statement(writes=many or context.isinsert or context.isupdate or context.isdelete)


def _nothing() -> None:
    pass


class ScopedTransaction(ScopedSnapshot):
    """A transaction of one project: a snapshot and the changes that a project may make."""

    def __init__(self, batch: Batch, transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._batch = batch

    webhooks = SnapshotPart(WebhookChanges)
    rehearsals = SnapshotPart(RehearsalSaving)
    changes = SnapshotPart(ChangeSaving)

    def narrowed(self, project: ProjectName) -> "ScopedTransaction":
        """Return the same transaction for one project in its scope."""
        return ScopedTransaction(self._batch, self._batch.open(self.scope.narrowed(project)))

    def lock(self) -> None:
        """Begin now and lock out other writers until the commit."""
        self.transaction.connection  # noqa: B018 - its first use locks the counter

    def after_commit(self, act: Act, *, undone: Act = _nothing) -> None:
        """Call `act` after the commit, or `undone` if this transaction is rolled back."""
        self._batch.after_commit(act, undone)


class Transaction(Snapshot, ScopedTransaction):
    """A transaction on everything."""

    records = SnapshotPart(RecordChanges)
    time = SnapshotPart(TimeChanges)
    fleet_file = SnapshotPart(FleetFileChanges)
    tokens = SnapshotPart(TokenChanges)
    sessions = SnapshotPart(SessionChanges)
    answers = SnapshotPart(AnswerChanges)
    rehearsals = SnapshotPart(RehearsalChanges)

    def scoped(self, scope: Scope) -> ScopedTransaction:
        """Return the same transaction limited to a scope."""
        kind = Transaction if scope.project is None else ScopedTransaction
        return kind(self._batch, self._batch.open(scope))

    def savepoint(self) -> AbstractContextManager["Transaction"]:
        """Open the same transaction again; if the block raises, only the block is rolled back."""
        return self._batch.savepoint()


class Transact(Protocol):
    """Runs work in a transaction of its own and commits it; only the worker provides one."""

    def __call__(self, work: Callable[[Transaction], T], /) -> T:
        """Return the result of the work once it is committed."""
        ...
