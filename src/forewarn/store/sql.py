"""The store: opened by the URL of its database, read in snapshots, written in transactions."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from forewarn.clock import monotonic
from forewarn.control.durations import Durations
from forewarn.control.ports.scope import Scope
from forewarn.core.errors import MAY_STILL_HAPPEN, Unavailable, Uncertain
from forewarn.core.model.record import Record
from forewarn.core.words import GroupName, MachineId, ProjectName
from forewarn.store import tables
from forewarn.store.opening.database import (
    Database,
    Engines,
    create_engines,
    parse_database,
)
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.private_files import create_private, keep_private
from forewarn.store.opening.schema import check_schema, migrate
from forewarn.store.reads.snapshot import ProjectSnapshot, SqlSnapshot
from forewarn.store.writes.activity_writes import save_activity
from forewarn.store.writes.transaction import ProjectTransaction, SqlTransaction


class SqlStore:
    """Everything that is kept, in one database."""

    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self._engines = engines
        self._of_thread = threading.local()
        self.durations = Durations()  # of whole transactions, by whether they may write
        # Told of records once they are saved, by the thread that saved them.
        self.saved: Callable[[Sequence[Record]], None] = lambda _: None

    @contextmanager
    def read(self) -> Iterator[SqlSnapshot]:
        """Open a consistent snapshot."""
        with self._begin(self._engines.reading) as connection:
            yield SqlSnapshot(connection)

    @contextmanager
    def write(self) -> Iterator[SqlTransaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        with self._begin(self._engines.writing) as connection:
            opened = SqlTransaction(connection)
            yield opened
        self._tell(opened.recorded)

    @contextmanager
    def joining(self) -> Iterator[SqlTransaction]:
        """Open a transaction that all which this thread opens within the block are part of."""
        with self._begin(self._engines.writing) as connection:
            joined, self._of_thread.joined = self._joined, connection
            untold, self._of_thread.untold = self._untold, []
            opened = SqlTransaction(connection)
            try:
                yield opened
            finally:
                self._of_thread.joined = joined
                mine, self._of_thread.untold = self._of_thread.untold, untold
        self._tell([*mine, *opened.recorded])

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled, in a transaction that writers need not wait for."""
        with self._begin(self._engines.writing) as connection:
            save_activity(connection, groups, machines)

    def scoped(self, scope: Scope) -> "SqlStore | ProjectStore":
        """Return the same store as a scope sees it."""
        return self if scope.project is None else ProjectStore(self, scope.project)

    @contextmanager
    def read_project(self, project: ProjectName) -> Iterator[ProjectSnapshot]:
        """Open a consistent snapshot of what one project sees."""
        with self._begin(self._engines.reading) as connection:
            yield ProjectSnapshot(connection, project=project)

    @contextmanager
    def write_project(self, project: ProjectName) -> Iterator[ProjectTransaction]:
        """Open a transaction that finds what one project sees."""
        with self._begin(self._engines.writing) as connection:
            opened = ProjectTransaction(connection, project=project)
            yield opened
        self._tell(opened.recorded)

    @property
    def deadlines(self) -> Deadlines:
        """How long the database is waited for, and whether it is asked at all."""
        return self._engines.deadlines

    def serve(self) -> None:
        """Wait for no answer of the database longer than callers do, from now on."""
        self._engines.serve()

    def close(self) -> None:
        """Close every connection."""
        self._engines.dispose()

    def prepare(self, *, new_id: Callable[[], str]) -> None:
        """Bring the database up to date; one that is new is given a lineage by `new_id`.

        Its files are their owner's alone from then on.
        """
        if self._database.file is not None:
            create_private(self._database.file)
            keep_private(self._database.file)
        with self._begin(self._engines.writing) as connection:
            migrate(connection, name=self._database.name)
            if connection.execute(select(tables.meta.c.id)).first() is None:
                connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": new_id()})

    def check(self) -> None:
        """Refuse a database whose schema is another forewarn's."""
        with self._begin(self._engines.reading) as connection:
            check_schema(connection, name=self._database.name)

    @property
    def _joined(self) -> Connection | None:
        """The connection of the transaction that those of this thread are part of, if there is one."""
        joined: Connection | None = getattr(self._of_thread, "joined", None)
        return joined

    @property
    def _untold(self) -> list[Record] | None:
        """What has been saved within the transaction that those of this thread are part of."""
        untold: list[Record] | None = getattr(self._of_thread, "untold", None)
        return untold

    def _tell(self, records: Sequence[Record]) -> None:
        """Tell of records that were saved; those of a part, once the whole is."""
        if (untold := self._untold) is not None:
            untold.extend(records)
        elif records:
            self.saved(records)

    @contextmanager
    def _begin(self, engine: Engine) -> Iterator[Connection]:
        if (joined := self._joined) is not None:
            # A part that raises is undone, whatever becomes of the whole.
            with joined.begin_nested():
                yield joined
            return
        began, kind = monotonic(), "write" if engine is self._engines.writing else "read"
        try:
            with self._connect(engine) as connection:
                yield from self._committing(connection, writing=kind == "write")
        finally:
            self.durations.note(kind, seconds=monotonic() - began)

    def _committing(self, connection: Connection, *, writing: bool) -> Iterator[Connection]:
        """Commit what is done meanwhile; Uncertain if the connection is lost while that is under way."""
        done = False
        try:
            with connection.begin():
                yield connection
                done = True
        except Unavailable as error:
            if done and writing and connection.invalidated:
                raise Uncertain(f"{error}; {MAY_STILL_HAPPEN}") from error
            raise

    def _connect(self, engine: Engine) -> Connection:
        self._engines.check(engine)
        try:
            return engine.connect()
        except PoolTimeout:
            raise Unavailable(f"{self._database.name} is busy: try again") from None


class ProjectStore:
    """The same store, of which only what one project sees can be read."""

    def __init__(self, store: SqlStore, project: ProjectName) -> None:
        self._store = store
        self._project = project

    def read(self) -> AbstractContextManager[ProjectSnapshot]:
        """Open a consistent snapshot."""
        return self._store.read_project(self._project)

    def write(self) -> AbstractContextManager[ProjectTransaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        return self._store.write_project(self._project)


def open_store(url: str, *, new_id: Callable[[], str], as_it_is: bool = False) -> SqlStore:
    """Open the store in a database; made if it is empty, brought up to date if it is older.

    A server takes the lock (`lock.hold`) first, so that it does not change the schema under another.
    Others open it `as_it_is`: Conflict if its schema is not this forewarn's.
    """
    database = parse_database(url)
    store = SqlStore(database, create_engines(database))
    try:
        if as_it_is:
            store.check()
        else:
            store.prepare(new_id=new_id)
    except BaseException:
        store.close()
        raise
    return store
