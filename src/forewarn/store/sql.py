"""The store: opened by the URL of its database, read in snapshots, written in transactions."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from forewarn.clock import monotonic
from forewarn.control.durations import Durations
from forewarn.control.ports.saved import Listener
from forewarn.control.ports.scope import Scope
from forewarn.control.ports.store import Act
from forewarn.core.errors import Unavailable, Uncertain
from forewarn.core.words import GroupName, MachineId, ProjectName
from forewarn.store import tables
from forewarn.store.joint import Joint, watch_writes
from forewarn.store.opening.database import Database, Engines, parse_database
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import check_unserved
from forewarn.store.opening.schema import check_schema, migrate
from forewarn.store.opening.sqlite_files import create_private, keep_private
from forewarn.store.reads.open_transaction import KnownMeta, OpenTransaction
from forewarn.store.snapshots import ProjectSnapshot, ProjectTransaction, SqlSnapshot, SqlTransaction
from forewarn.store.writes.fleet_writes import save_activity


class SqlStore:
    """Everything that is kept, in one database."""

    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self._engines = engines
        self._of_thread = threading.local()
        self.durations = Durations()  # of whole transactions, by whether they may write
        # Told of what a transaction has saved, by the thread that saved it; None: that is not known.
        self.saved: Listener = lambda _: None
        watch_writes(engines.writing)

    @contextmanager
    def read(self) -> Iterator[SqlSnapshot]:
        """Open a consistent snapshot; it sees what its thread is about to save."""
        with self._reading() as (connection, known):
            yield SqlSnapshot(OpenTransaction(connection, known=known))

    @contextmanager
    def write(self) -> Iterator[SqlTransaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises.

        All that the thread opens within the block are part of it.
        """
        with self._part() as joint:
            yield SqlTransaction(_opened(joint))

    @contextmanager
    def together(self) -> Iterator[Joint]:
        """Save what this thread saves within the block together; no transaction if that is nothing."""
        joint = self._of_thread.joint = Joint(self._connecting)
        try:
            yield joint
            joint.commit()
        except BaseException as error:
            self._leave(joint)
            joint.undone()
            if isinstance(error, Uncertain):
                self.saved(None)
            raise
        self._leave(joint)
        try:
            if joint.changes:
                self.saved(joint.changes)
        finally:
            joint.followed()  # it is saved, whatever those make of it who are told

    def _leave(self, joint: Joint) -> None:
        self._of_thread.joint = None
        joint.close()

    def after_saving(self, saved: Act, *, undone: Act = lambda: None) -> None:
        """Do something once what this thread is saving is saved, or something else once it is undone.

        At once if it is saving nothing.
        """
        joint = self._joint
        if joint is None:
            saved()
        else:
            joint.follow(saved, undone)

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
        with self._reading() as (connection, known):
            yield ProjectSnapshot(OpenTransaction(connection, project=project, known=known))

    @contextmanager
    def write_project(self, project: ProjectName) -> Iterator[ProjectTransaction]:
        """Open a transaction that finds what one project sees."""
        with self._part() as joint:
            yield ProjectTransaction(_opened(joint, project=project))

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
    def _joint(self) -> Joint | None:
        """What this thread is saving, if it is."""
        joint: Joint | None = getattr(self._of_thread, "joint", None)
        return joint

    @contextmanager
    def _part(self) -> Iterator[Joint]:
        """Open a part of what this thread is saving, or all of it."""
        joint = self._joint
        if joint is None:
            with self.together() as joint, joint.part():
                yield joint
        else:
            with joint.part():
                yield joint

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, KnownMeta]]:
        joint = self._joint
        if joint is not None and joint.begun:
            yield joint.begin(), joint.known
            return
        with self._begin(self._engines.reading) as connection:
            yield connection, KnownMeta()

    @contextmanager
    def _connecting(self) -> Iterator[Connection]:
        with self._timed("write"), self._connect(self._engines.writing) as connection:
            yield connection

    @contextmanager
    def _begin(self, engine: Engine) -> Iterator[Connection]:
        kind = "write" if engine is self._engines.writing else "read"
        with self._timed(kind), self._connect(engine) as connection, connection.begin():
            yield connection

    @contextmanager
    def _timed(self, kind: str) -> Iterator[None]:
        began = monotonic()
        try:
            yield
        finally:
            self.durations.note(kind, seconds=monotonic() - began)

    def _connect(self, engine: Engine) -> Connection:
        self._engines.check(engine)
        try:
            return engine.connect()
        except PoolTimeout:
            raise Unavailable(f"{self._database.name} is busy: try again") from None


def _opened(joint: Joint, *, project: ProjectName | None = None) -> OpenTransaction:
    """Open a part of what is saved together: it holds the lock on the counter from the start."""
    known, saved = joint.known, joint.changes
    return OpenTransaction(joint.begin(), lock=True, project=project, known=known, saved=saved)


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

    def after_saving(self, saved: Act, *, undone: Act = lambda: None) -> None:
        """Do something once what this thread is saving is saved, or something else once it is undone."""
        self._store.after_saving(saved, undone=undone)


def open_store(url: str, *, new_id: Callable[[], str], as_it_is: bool = False) -> SqlStore:
    """Open the store in a database; made if it is empty, brought up to date if it is older.

    A server takes the lock (`lock.hold`) first, so that it does not change the schema under another.
    Others open it `as_it_is`: Conflict if its schema is not this forewarn's.
    """
    database = parse_database(url)
    if as_it_is:
        check_unserved(database)
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
