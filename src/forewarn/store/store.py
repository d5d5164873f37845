"""The store: opened by the URL of its database, read in snapshots, written in batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from forewarn.clock import monotonic
from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.errors import Unavailable, Uncertain
from forewarn.core.scope import Scope
from forewarn.durations import Durations
from forewarn.store import tables
from forewarn.store.batch import Batch, watch_writes
from forewarn.store.opening.database import Database, Engines, parse_database
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import check_unserved
from forewarn.store.opening.schema import check_schema, migrate
from forewarn.store.opening.sqlite_files import create_private, keep_private
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.saved import Listener
from forewarn.store.snapshots import ScopedSnapshot, Snapshot
from forewarn.store.writes.fleet_writes import save_activity


class Store:
    """Everything that is kept, in one database."""

    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self.engines = engines  # one that reads, and one that writes
        self.durations = Durations()  # of whole transactions, by whether they may write
        # Told of what a transaction has saved, by the thread that saved it; None: that is not known.
        # Owner: the start of the server, which sets it before the worker runs.
        self.saved: Listener = lambda _: None
        watch_writes(engines.writing)

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a consistent snapshot of what is committed."""
        with self._begin(self.engines.reading) as connection:
            yield Snapshot(OpenTransaction(lambda: connection))

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Open a batch, and commit it when the block ends; if it raises, nothing of it is saved.

        The server does this in one place: `forewarn.server.threads.batches`.
        """
        batch = Batch(self._connecting)
        try:
            yield batch
            batch.commit()
        except BaseException as error:
            batch.close()
            batch.undone()
            if isinstance(error, Uncertain):
                self.saved(None)
            raise
        batch.close()
        try:
            if batch.changes:
                self.saved(batch.changes)
        finally:
            batch.committed()  # the commit stands, even if a listener failed

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled, in a transaction that writers need not wait for."""
        with self._begin(self.engines.writing) as connection:
            save_activity(connection, groups, machines)

    def scoped(self, scope: Scope) -> "Store | ProjectStore":
        """Return the same store as a scope sees it."""
        return self if scope.project is None else ProjectStore(self, scope)

    @contextmanager
    def read_scope(self, scope: Scope) -> Iterator[ScopedSnapshot]:
        """Open a consistent snapshot of what one project sees."""
        with self._begin(self.engines.reading) as connection:
            yield ScopedSnapshot(OpenTransaction(lambda: connection, scope=scope))

    @property
    def deadlines(self) -> Deadlines:
        """How long the database is waited for, and whether it is asked at all."""
        return self.engines.deadlines

    def serve(self) -> None:
        """Wait for no answer of the database longer than callers do, from now on."""
        self.engines.serve()

    def close(self) -> None:
        """Close every connection."""
        self.engines.dispose()

    def prepare(self, *, new_id: Callable[[], str]) -> None:
        """Bring the database up to date; one that is new is given a lineage by `new_id`.

        Its files are their owner's alone from then on.
        """
        if self._database.file is not None:
            create_private(self._database.file)
            keep_private(self._database.file)
        with self._begin(self.engines.writing) as connection:
            migrate(connection, name=self._database.name)
            if connection.execute(select(tables.meta.c.id)).first() is None:
                connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": new_id()})

    def check(self) -> None:
        """Refuse a database whose schema is another forewarn's."""
        with self._begin(self.engines.reading) as connection:
            check_schema(connection, name=self._database.name)

    @contextmanager
    def _connecting(self) -> Iterator[Connection]:
        with self._timed("write"), self._connect(self.engines.writing) as connection:
            yield connection

    @contextmanager
    def _begin(self, engine: Engine) -> Iterator[Connection]:
        kind = "write" if engine is self.engines.writing else "read"
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
        self.engines.check(engine)
        try:
            return engine.connect()
        except PoolTimeout:
            raise Unavailable(f"{self._database.name} is busy: try again") from None


class ProjectStore:
    """The same store, of which only what one project sees can be read."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        """Open a consistent snapshot."""
        return self._store.read_scope(self._scope)


def open_store(url: str, *, new_id: Callable[[], str], without_migration: bool = False) -> Store:
    """Open the store in a database; made if it is empty, brought up to date if it is older.

    A server takes the lock (`lock.hold`) first, so that it does not change the schema under another.
    Others open it `without_migration`: Conflict if its schema is not this forewarn's.
    """
    database = parse_database(url)
    if without_migration:
        check_unserved(database)
    store = Store(database, create_engines(database))
    try:
        if without_migration:
            store.check()
        else:
            store.prepare(new_id=new_id)
    except BaseException:
        store.close()
        raise
    return store
