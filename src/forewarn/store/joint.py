"""What a thread saves together: one transaction, begun when it is first needed, and the parts it is made of.

A part that raises is undone alone. A savepoint is set only where something was written before that must stay:
undoing a part before which nothing was written is undoing all of the level it is in. Nor is one set before
the database is asked something in its part: what is only postponed is forgotten.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Transaction, event

from forewarn.control.ports.foreseen import Foreseen
from forewarn.control.ports.saved import SavedChanges
from forewarn.control.ports.store import Act
from forewarn.core.errors import MAY_STILL_HAPPEN, ForewarnError, Unavailable, Uncertain
from forewarn.store.postponed import OPEN, Postponed
from forewarn.store.reads.loaded import Loaded
from forewarn.store.reads.loading import load
from forewarn.store.reads.open_transaction import KnownMeta
from forewarn.store.rows.mapping import Columns
from forewarn.store.rows.meta import Meta

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOST = "the connection to the database was lost while this was saved together with something else: try again"


@dataclass(slots=True)
class _Level:
    """The whole transaction, or a savepoint in it; not begun while nothing was asked of it."""

    transaction: Transaction | None = None
    meta: Meta | None = None  # as it was before
    written: bool = False
    postponed: Postponed = field(default_factory=Postponed)
    parts: int = 0  # that are open in it, one within the other


@dataclass(slots=True)
class _Follows:
    """What is to happen once the whole is saved, or once this is undone."""

    saved: Act
    undone: Act


@dataclass(frozen=True, slots=True)
class _Before:
    """How far a joint transaction was when a part began."""

    changes: int
    follows: int
    meta: Meta | None


@dataclass(slots=True)
class Joint:
    """A transaction of one thread."""

    connect: Callable[[], AbstractContextManager[Connection]]
    connection: Connection | None = None
    known: KnownMeta = field(default_factory=KnownMeta)  # as it is within the transaction
    changes: list[SavedChanges] = field(default_factory=list)
    postpones: bool = False  # whether writes whose result nobody needs are postponed
    _follows: list[_Follows] = field(default_factory=list)
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _closing: AbstractContextManager[Connection] | None = None
    _broken: ForewarnError | None = None
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
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        if self.connection is None:
            self._closing = self.connect()
            self.connection = self._closing.__enter__()
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

    def follow(self, saved: Act, undone: Act) -> None:
        """Have something done once the whole is saved, or this part of it undone."""
        self._follows.append(_Follows(saved, undone))

    def foresee(self, calls: Sequence[Foreseen]) -> None:
        """Load at once what calls that come next will ask for, and postpone what they write."""
        self.known.loaded = load(self.begin(), calls, self.known)
        self.postpones = True

    @contextmanager
    def part(self) -> Iterator[None]:
        """Undo alone what is done within the block if it raises."""
        before = _Before(len(self.changes), len(self._follows), self.known.meta)
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
        self._disconnect()

    def followed(self) -> None:
        """Do what was to follow now that it is saved."""
        for each in self._follows:
            _perform(each.saved)

    def undone(self) -> None:
        """Do what was to follow now that it is undone."""
        for each in reversed(self._follows):
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
        undone = self._follows[before.follows :]
        del self._follows[before.follows :]
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
        closing, connection = self._closing, self.connection
        self._closing = self.connection = self.known.meta = None
        self.known.loaded = Loaded()
        if closing is None or connection is None:
            return
        if not connection.invalidated:
            connection.info.pop(OPEN, None)
        closing.__exit__(None, None, None)  # undoes what was not committed


def _perform(act: Act) -> None:
    try:
        act()
    except Exception:  # what is saved is saved, and the others follow too
        log.exception("something did not follow what was saved")


def watch_writes(engine: Engine) -> None:
    """Have joint transactions know when the database is asked something in them, or written to."""

    @event.listens_for(engine, "before_cursor_execute")
    def note(
        connection: Connection, _cursor: Any, _statement: str, _rows: Any, context: Any, many: Any
    ) -> None:
        if (joint := connection.info.get(OPEN)) is not None:
            # Nothing but writing is done many times at once.
            joint.reach(writing=many or context.isinsert or context.isupdate or context.isdelete)
