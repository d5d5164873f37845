"""What a thread saves together: one transaction, begun when it is first needed, and the parts it is made of.

A part that raises is undone alone. A savepoint is set only where something was written before that must stay:
undoing a part before which nothing was written is undoing all of the level it is in.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Transaction, event

from forewarn.control.ports.saved import SavedChanges
from forewarn.control.ports.store import Act
from forewarn.core.errors import MAY_STILL_HAPPEN, ForewarnError, Unavailable, Uncertain
from forewarn.store.reads.open_transaction import KnownMeta
from forewarn.store.rows.meta import Meta

log = logging.getLogger(__name__)

_OPEN = "forewarn.joint"  # in the `info` of a connection: what it is used for
_LOST = "the connection to the database was lost while this was saved together with something else: try again"


@dataclass(slots=True)
class _Level:
    """The whole transaction, or a savepoint in it; not begun while nothing was asked of it."""

    transaction: Transaction | None = None
    meta: Meta | None = None  # as it was before
    written: bool = False
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
    _follows: list[_Follows] = field(default_factory=list)
    _levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _closing: AbstractContextManager[Connection] | None = None
    _broken: ForewarnError | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a transaction."""
        return self.connection is not None

    @property
    def connection_lost(self) -> bool:
        """Whether the database has ended the connection, and the transaction with it."""
        return self.connection is not None and self.connection.invalidated

    def begin(self) -> Connection:
        """Return the connection, with all levels begun."""
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        if self.connection is None:
            self._closing = self.connect()
            self.connection = self._closing.__enter__()
            self.connection.info[_OPEN] = self
        for level in self._levels:
            if level.transaction is None:
                root = level is self._levels[0]
                level.transaction = self.connection.begin() if root else self.connection.begin_nested()
        return self.connection

    def note_write(self) -> None:
        """Take note that something is about to be written."""
        self._levels[-1].written = True

    def follow(self, saved: Act, undone: Act) -> None:
        """Have something done once the whole is saved, or this part of it undone."""
        self._follows.append(_Follows(saved, undone))

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
        return level.written or (self.known.unwritten and self.known.meta is not level.meta)

    def commit(self) -> None:
        """Save all of it; Uncertain if it cannot be told whether it was."""
        if self._broken is not None:
            raise Unavailable(str(self._broken))
        whole, connection = self._levels[0].transaction, self.connection
        if whole is None or connection is None:
            return
        self.known.write(connection)
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
            level.transaction.commit()
        self._levels[-2].written = self._levels[-2].written or level.written

    def _undo(self, level: _Level, before: _Before) -> None:
        self.known.meta = before.meta
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
        root = level is self._levels[0]
        if root and level.parts == 1:
            self._disconnect()  # what comes next begins anew, if anything does
            self._broken = None
            return
        if transaction is None:
            return
        if root:
            self.known.meta = None  # others may save something before it is locked again
        transaction.rollback()
        if level.parts > 1 and not self.connection_lost:
            self.begin()  # the part around it goes on with the connection

    def _disconnect(self) -> None:
        closing, connection = self._closing, self.connection
        self._closing = self.connection = self.known.meta = None
        if closing is None or connection is None:
            return
        if not connection.invalidated:
            connection.info.pop(_OPEN, None)
        closing.__exit__(None, None, None)  # undoes what was not committed


def _perform(act: Act) -> None:
    try:
        act()
    except Exception:  # what is saved is saved, and the others follow too
        log.exception("something did not follow what was saved")


def watch_writes(engine: Engine) -> None:
    """Have joint transactions know when something is written in them."""

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Connection, *about: Any) -> None:
        context = about[3]
        changing = context is not None and (context.isinsert or context.isupdate or context.isdelete)
        if changing and (joint := connection.info.get(_OPEN)) is not None:
            joint.note_write()
