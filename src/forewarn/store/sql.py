"""The store: opened by the URL of its database, read in snapshots, written in transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from forewarn.core.errors import Unavailable
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.opening.database import (
    Database,
    Engines,
    database_of,
    engines_of,
)
from forewarn.store.opening.schema import check_schema, migrate
from forewarn.store.reads.snapshot import SqlSnapshot
from forewarn.store.writes.transaction import SqlTransaction


class SqlStore:
    """Everything that is kept, in one database."""

    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self._engines = engines

    @contextmanager
    def read(self, *, project: ProjectName | None = None) -> Iterator[SqlSnapshot]:
        """Open a consistent snapshot, of the whole fleet or as one project sees it."""
        with self._begin(self._engines.reading) as connection:
            yield SqlSnapshot(connection, project=project)

    @contextmanager
    def write(self, *, project: ProjectName | None = None) -> Iterator[SqlTransaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        with self._begin(self._engines.writing) as connection:
            yield SqlTransaction(connection, project=project)

    def close(self) -> None:
        """Close every connection; whatever was saved stays saved."""
        self._engines.dispose()

    def prepare(self, *, new_id: Callable[[], str]) -> None:
        """Bring the database up to date; one that is new is given a lineage by `new_id`."""
        with self._begin(self._engines.writing) as connection:
            migrate(connection, name=self._database.name)
            if connection.execute(select(tables.meta.c.id)).first() is None:
                connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": new_id()})

    def check(self) -> None:
        """Refuse a database whose schema is another forewarn's."""
        with self._begin(self._engines.reading) as connection:
            check_schema(connection, name=self._database.name)

    @contextmanager
    def _begin(self, engine: Engine) -> Iterator[Connection]:
        with self._connect(engine) as connection, connection.begin():
            yield connection

    def _connect(self, engine: Engine) -> Connection:
        try:
            return engine.connect()
        except PoolTimeout:
            raise Unavailable(f"{self._database.name} is busy: try again") from None


def open_store(url: str, *, new_id: Callable[[], str], as_it_is: bool = False) -> SqlStore:
    """Open the store in a database; made if it is empty, brought up to date if it is older.

    A server takes the lock (`lock.hold`) first, so that it does not change the schema under another. Whoever
    cannot have the lock opens it `as_it_is`: Conflict if that is another schema than this forewarn's.
    """
    database = database_of(url)
    store = SqlStore(database, engines_of(database))
    try:
        if as_it_is:
            store.check()
        else:
            store.prepare(new_id=new_id)
    except BaseException:
        store.close()
        raise
    return store
