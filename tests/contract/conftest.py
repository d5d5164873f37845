import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import delete, insert

from forewarn.store import tables
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.store import Store, open_store
from tests.helpers.database import stores


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database: SQLite, then PostgreSQL."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'forewarn.db'}"


@pytest.fixture
def migrated_sqlite_url(tmp_path: Path) -> str:
    return stores.sqlite_url(tmp_path)


@pytest.fixture
def store_at_url(url: str) -> Iterator[Store]:
    """Return an empty store with its own database, for tests that also need its URL."""
    opened = open_store(url, new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return an empty store: on SQLite, then on PostgreSQL."""
    name = "migrated_sqlite_url" if request.param == "sqlite" else "emptied_postgres_url"
    opened = open_store(request.getfixturevalue(name), new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@pytest.fixture
def emptied_postgres_url(shared_postgres_url: str) -> str:
    """Return the URL of an emptied database, which takes a tenth of the time of a new one."""
    engines = create_engines(parse_database(shared_postgres_url))
    with engines.writing.begin() as connection:
        for table in tables.metadata.sorted_tables:
            connection.execute(delete(table))
        connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": "LINEAGE"})
    engines.dispose()
    return shared_postgres_url


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: str) -> str:
    name = f"shared_{os.getpid()}"  # one per worker of pytest-xdist
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = postgres_server.replace("/postgres?", f"/{name}?")
    open_store(url, new_id=lambda: "LINEAGE").close()
    return url
