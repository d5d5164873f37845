"""A batch: one database transaction, made of savepoints that can be undone one by one.

The batch opens a database transaction when something is first read or written in it. It sends SAVEPOINT only
where earlier writes must survive a rollback, and only before the next statement: a savepoint without earlier
writes is undone by rolling back the level it is in, and postponed writes are simply dropped.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy import Transaction as DatabaseTransaction

from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import MAY_STILL_HAPPEN, ForewarnError, Unavailable, Uncertain
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store.prefetch import Prefetch, Loaded
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
from forewarn.store.reads.loading import load
from forewarn.store.reads.open_transaction import KnownMeta, OpenTransaction
from forewarn.store.rows.mapping import Columns
from forewarn.store.rows.stored import Meta
from forewarn.store.saved import SavedChanges
from forewarn.store.snapshots import ScopedSnapshot, Snapshot
from forewarn.store.writes.saving import ChangeSaving
from forewarn.store.writes.writer import OPEN, Postponed

log = logging.getLogger(__name__)

T = TypeVar("T")
Act: TypeAlias = Callable[[], None]

_LOST = "the connection to the database was lost while this was saved together with something else: try again"


@dataclass(slots=True)
class _Level:
    """The whole transaction, or a savepoint in it; not begun while nothing was asked of it."""

    transaction: DatabaseTransaction | None = None
    meta: Meta | None = None  # as it was before
    written: bool = False
    postponed: Postponed = field(default_factory=Postponed)
    parts: int = 0  # that are open in it, one within the other


@dataclass(slots=True)
class _Effect:
    """What happens after the commit, or after a rollback."""

    committed: Act
    undone: Act


@dataclass(frozen=True, slots=True)
class _Before:
    """How far a batch was when a savepoint began."""

    changes: int
    effects: int
    meta: Meta | None


@dataclass(slots=True)
class Batch:
    """One database transaction; used by one thread at a time."""

    connect: Callable[[], AbstractContextManager[Connection]]
    connection: Connection | None = None
    known: KnownMeta = field(default_factory=KnownMeta)  # as it is within the transaction
    changes: list[SavedChanges] = field(default_factory=list)
    postpones: bool = False  # whether writes whose result nobody needs are postponed
    _effects: list[_Effect] = field(default_factory=list)
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    closing: AbstractContextManager[Connection] | None = None
    _broken: ForewarnError | None = None
    _closed: bool = False
    _reaching: bool = False  # whether levels are being begun, or what was postponed is being written

    @property
    def begun(self) -> bool:
        """Whether there is a transaction."""
        return self.connection is not None

    @property
    def connection_lost(self) -> bool:
        """Whether the database has ended the connection, and the transaction with it."""
        return self.connection is not None and self.connection.invalidated

    def begin(self) -> Connection:
        """Return the connection, in a transaction."""
        self._check_open()
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        if self.connection is None:
            self.closing = self.connect()
            self.connection = self.closing.__enter__()
            self.connection.info[OPEN] = self
        if self._levels[0].transaction is None:
            self._levels[0].transaction = self._alone(self.connection.begin)
        return self.connection

    def postpone(self, statement: Any, rows: Sequence[Columns], *, changing: bool = False) -> None:
        """Have rows written before the database is asked anything else, or when all is saved."""
        self._levels[-1].postponed.add(statement, rows, changing=changing)

    def reach(self, *, writing: bool = False) -> None:
        """Begin all levels, and write what was postponed: the database is about to be asked something."""
        if self._reaching or self.connection is None:
            return
        for level in self._levels:
            self._alone(partial(self._reach, level, self.connection))
        self._levels[-1].written = self._levels[-1].written or writing

    def _reach(self, level: _Level, connection: Connection) -> None:
        if level.transaction is None:
            level.transaction = connection.begin_nested()
        if not level.postponed:
            return
        level.written = True
        try:
            level.postponed.write(connection)
        except ForewarnError as error:
            if level is not self._levels[-1]:
                self._broken = error  # it is of parts that were over already
            raise

    def after_commit(self, act: Act, undone: Act) -> None:
        """Call `act` after the commit, or `undone` if this savepoint or the batch is rolled back."""
        self._check_open()
        self._effects.append(_Effect(act, undone))

    def prefetch(self, calls: Sequence[Prefetch]) -> None:
        """Load at once what calls that come next will ask for, and postpone what they write."""
        self.known.loaded = load(self.begin(), calls, self.known)
        self.postpones = True

    @contextmanager
    def savepoint(self) -> Iterator["Transaction"]:
        """Open a transaction on everything; if the block raises, only the block is undone."""
        with self.undone_alone():
            yield Transaction(self, self.open())

    def open(self, scope: Scope = EVERYTHING) -> OpenTransaction:
        """Return what a transaction reads and writes with; its first statement locks the counter."""
        return OpenTransaction(self.begin, lock=True, scope=scope, known=self.known, saved=self.changes)

    @contextmanager
    def undone_alone(self) -> Iterator[None]:
        """Undo what is done within the block, and nothing else, if it raises."""
        before = _Before(len(self.changes), len(self._effects), self.known.meta)
        own = self._has_changed(self._levels[-1])
        if own:
            self._levels.append(_Level(meta=self.known.meta))
        level = self._levels[-1]
        level.parts += 1
        try:
            yield
            if own:
                self._release(level)
        except BaseException:
            self._undo(level, before)
            raise
        finally:
            level.parts -= 1
            if own:
                self._levels.pop()

    def _has_changed(self, level: _Level) -> bool:
        """Return whether something that must stay was done in a level, written already or not."""
        return (
            level.written
            or bool(level.postponed)
            or (self.known.unwritten and self.known.meta is not level.meta)
        )

    def commit(self) -> None:
        """Save all of it; Uncertain if it cannot be told whether it was."""
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        whole, connection = self._levels[0].transaction, self.connection
        if whole is None or connection is None:
            return
        self.known.write(self.postpone)
        self.reach()
        try:
            whole.commit()
        except ForewarnError as error:
            if connection.invalidated:
                raise Uncertain(f"{error}; {MAY_STILL_HAPPEN}") from error
            # SQLAlchemy takes it as over, but the database may not.
            connection.connection.rollback()
            raise

    def close(self) -> None:
        """Give the connection back; what was not saved is undone."""
        self._closed = True
        self._disconnect()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the batch of this transaction is over: nothing would commit this")

    def committed(self) -> None:
        """Run the effects of the commit."""
        for each in self._effects:
            _perform(each.committed)

    def undone(self) -> None:
        """Run the effects of the rollback."""
        for each in reversed(self._effects):
            _perform(each.undone)

    def _release(self, level: _Level) -> None:
        if level.transaction is not None:
            self._alone(level.transaction.commit)
        self._levels[-2].postponed.add_all(level.postponed)
        self._levels[-2].written = self._levels[-2].written or level.written

    def _alone(self, act: Callable[[], T]) -> T:
        """Ask the database something that begins no level, and that nothing postponed is written for."""
        self._reaching = True
        try:
            return act()
        finally:
            self._reaching = False

    def _undo(self, level: _Level, before: _Before) -> None:
        self.known.meta = before.meta
        self.known.loaded = Loaded()
        try:
            self._roll_back(level)
        except ForewarnError as error:
            self._broken = error
        if self.connection_lost:
            # What the others have written is gone with it.
            self._broken = self._broken or Unavailable(_LOST)
        del self.changes[before.changes :]
        undone = self._effects[before.effects :]
        del self._effects[before.effects :]
        for each in reversed(undone):
            _perform(each.undone)

    def _roll_back(self, level: _Level) -> None:
        transaction, level.transaction, level.written = level.transaction, None, False
        level.postponed = Postponed()
        root = level is self._levels[0]
        if root and level.parts == 1:
            self._disconnect()  # what comes next begins anew, if anything does
            self._broken = None
            return
        if transaction is None:
            return
        if root:
            self.known.meta = None  # others may save something before it is locked again
        self._alone(transaction.rollback)
        if level.parts > 1 and not self.connection_lost:
            self.begin()  # the part around it goes on with the connection

    def _disconnect(self) -> None:
        closing, connection = self.closing, self.connection
        self.closing = self.connection = self.known.meta = None
        self.known.loaded = Loaded()
        if closing is None or connection is None:
            return
        if not connection.invalidated:
            connection.info.pop(OPEN, None)
        closing.__exit__(None, None, None)  # undoes what was not committed


def _nothing() -> None:
    """Do nothing after a rollback."""


class ScopedTransaction(ScopedSnapshot):
    """The same, and what can be changed for a project."""

    def __init__(self, batch: "Batch", transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._batch = batch

    def narrowed(self, project: ProjectName) -> "ScopedTransaction":
        """Return the same transaction for one project in its scope."""
        return ScopedTransaction(self._batch, self._batch.open(self.scope.narrowed(project)))

    def lock(self) -> None:
        """Begin now, and keep other writers out until the commit."""
        self.transaction.connection  # noqa: B018 - its first use locks the counter

    def after_commit(self, act: Act, *, undone: Act = _nothing) -> None:
        """Call `act` after the commit, or `undone` if this is rolled back."""
        self._batch.after_commit(act, undone)

    @cached_property
    def webhooks(self) -> WebhookChanges:
        """Webhooks."""
        return WebhookChanges(self.transaction)

    @cached_property
    def rehearsals(self) -> RehearsalSaving:
        """Rehearsals."""
        return RehearsalSaving(self.transaction)

    @cached_property
    def changes(self) -> ChangeSaving:
        """Where what was decided is saved."""
        return ChangeSaving(self.transaction)


class Transaction(Snapshot, ScopedTransaction):
    """The same, and all that can be changed."""

    def scoped(self, scope: Scope) -> ScopedTransaction:
        """Return the same transaction as a scope sees it."""
        opened = self._batch.open(scope)
        kind = Transaction if scope.project is None else ScopedTransaction
        return kind(self._batch, opened)

    @contextmanager
    def savepoint(self) -> Iterator["Transaction"]:
        """Open the same transaction again; if the block raises, only the block is undone."""
        with self._batch.savepoint() as tx:
            yield tx

    @cached_property
    def records(self) -> RecordChanges:
        """The history."""
        return RecordChanges(self.transaction)

    @cached_property
    def time(self) -> TimeChanges:
        """Service time."""
        return TimeChanges(self.transaction)

    @cached_property
    def fleet_file(self) -> FleetFileChanges:
        """The fleet file."""
        return FleetFileChanges(self.transaction)

    @cached_property
    def tokens(self) -> TokenChanges:
        """Tokens."""
        return TokenChanges(self.transaction)

    @cached_property
    def sessions(self) -> SessionChanges:
        """Sessions of browsers."""
        return SessionChanges(self.transaction)

    @cached_property
    def answers(self) -> AnswerChanges:
        """What calls were answered."""
        return AnswerChanges(self.transaction)

    @cached_property
    def rehearsals(self) -> RehearsalChanges:
        """Rehearsals."""
        return RehearsalChanges(self.transaction)


class Transact(Protocol):
    """Runs work in a transaction of its own; the worker has it, and nothing else does."""

    def __call__(self, work: Callable[[Transaction], T], /) -> T:
        """Return what the work returns once it is committed."""
        ...


def _perform(act: Act) -> None:
    try:
        act()
    except Exception:  # the commit stands, and the other effects run
        log.exception("an effect of a commit failed")


def watch_writes(engine: Engine) -> None:
    """Have batches know when the database is asked something in them, or written to."""

    @event.listens_for(engine, "before_cursor_execute")
    def note(
        connection: Connection, _cursor: Any, _statement: str, _rows: Any, context: Any, many: Any
    ) -> None:
        if (batch := connection.info.get(OPEN)) is not None:
            # Nothing but writing is done many times at once.
            batch.reach(writing=many or context.isinsert or context.isupdate or context.isdelete)
