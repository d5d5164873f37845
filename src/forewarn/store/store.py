"""The store: opened by the URL of its database, read in snapshots, written in batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from forewarn.clock import monotonic
from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.errors import Unavailable, Uncertain
from forewarn.core.scope import Scope
from forewarn.durations import Durations
from forewarn.store import tables
from forewarn.store.batch import Batch, watch_statements
from forewarn.store.opening.database import Database, Engines, parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import check_unserved
from forewarn.store.opening.schema import check_schema, migrate
from forewarn.store.opening.sqlite_files import create_private, keep_private
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.saved import Listener
from forewarn.store.snapshots import ScopedSnapshot, Snapshot
from forewarn.store.writes.fleet_writes import save_activity


class Store:
    """All saved data, in one database."""

    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self.engines = engines
        self.deadlines = engines.deadlines
        self.durations = Durations()  # of whole transactions, by "read" and "write"
        # Called with the saved changes by the thread that saved them; None: the outcome is not known.
        # Owner: the start of the server, which sets it before the worker runs.
        self.saved: Listener = lambda _: None
        watch_statements(engines.writing)

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a consistent snapshot of the committed state."""
        with self._begin(self.engines.reading) as connection:
            yield Snapshot(OpenTransaction(lambda: connection))

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Open a batch and commit it when the block ends; if the block raises, nothing is saved.

        The server does this in one place: `forewarn.server.threads.batches`.
        """
        batch = Batch(lambda: self._connect(self.engines.writing))
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
            if batch.state.saved:
                self.saved(batch.state.saved)
        finally:
            batch.committed()  # the commit stands, even if a listener failed

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled, without the lock of writers."""
        with self._begin(self.engines.writing) as connection:
            save_activity(connection, groups, machines)

    def scoped(self, scope: Scope) -> "Store | ProjectStore":
        """Return the same store limited to a scope."""
        return self if scope.project is None else ProjectStore(lambda: self._read_scope(scope))

    @contextmanager
    def _read_scope(self, scope: Scope) -> Iterator[ScopedSnapshot]:
        with self._begin(self.engines.reading) as connection:
            yield ScopedSnapshot(OpenTransaction(lambda: connection, scope=scope))

    def serve(self) -> None:
        """From now on, wait for the database no longer than callers wait for their answer."""
        self.deadlines.arm(self.engines.probe, ping=self.engines.ping)

    def close(self) -> None:
        """Close every connection."""
        self.engines.dispose()

    @contextmanager
    def _begin(self, engine: Engine) -> Iterator[Connection]:
        with self._connect(engine) as connection, connection.begin():
            yield connection

    @contextmanager
    def _connect(self, engine: Engine) -> Iterator[Connection]:
        writes = engine is self.engines.writing
        began = monotonic()
        try:
            self.deadlines.check(reading=not writes)
            with engine.connect() as connection:
                yield connection
        except PoolTimeout:
            raise Unavailable(f"{self._database.name} is busy: try again") from None
        finally:
            self.durations.note("write" if writes else "read", seconds=monotonic() - began)

    def prepare(self, *, new_id: Callable[[], str]) -> None:
        """Migrate the database to the current schema, and make its files private to their owner.

        `new_id` gives a new database its lineage.
        """
        if self._database.file is not None:
            create_private(self._database.file)
            keep_private(self._database.file)
        with self._begin(self.engines.writing) as connection:
            migrate(connection, name=self._database.name)
            if connection.execute(select(tables.meta.c.id)).first() is None:
                connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": new_id()})

    def check(self) -> None:
        """Refuse a database whose schema belongs to another version of forewarn."""
        with self._begin(self.engines.reading) as connection:
            check_schema(connection, name=self._database.name)


@dataclass(frozen=True, slots=True)
class ProjectStore:
    """A store limited to reads of one project."""

    read: Callable[[], AbstractContextManager[ScopedSnapshot]]


def open_store(url: str, *, new_id: Callable[[], str], without_migration: bool = False) -> Store:
    """Open the store in a database; create the schema if it is empty, migrate it if it is older.

    A server takes the lock (`lock.hold`) first, so that it does not migrate the schema under another server.
    Other programs open it `without_migration`: Conflict if the schema is not the current one.
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
