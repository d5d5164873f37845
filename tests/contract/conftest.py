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
    """Give the URL of an empty database, of each kind in turn."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'forewarn.db'}"


@pytest.fixture
def migrated_sqlite_url(tmp_path: Path) -> str:
    return stores.sqlite_url(tmp_path)


@pytest.fixture
def store_at_url(url: str) -> Iterator[Store]:
    """Give an empty store in a database of its own, for tests that reach for its URL too."""
    opened = open_store(url, new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Give an empty store, of each kind in turn."""
    name = "migrated_sqlite_url" if request.param == "sqlite" else "emptied_postgres_url"
    opened = open_store(request.getfixturevalue(name), new_id=lambda: "LINEAGE")
    yield opened
    opened.close()


@pytest.fixture
def emptied_postgres_url(shared_postgres_url: str) -> str:
    """Give the URL of a database that looks new: to empty one takes a tenth of the time of making one."""
    engines = create_engines(parse_database(shared_postgres_url))
    with engines.writing.begin() as connection:
        for table in tables.metadata.sorted_tables:
            connection.execute(delete(table))
        connection.execute(insert(tables.meta), {"id": 1, "number": 0, "lineage": "LINEAGE"})
    engines.dispose()
    return shared_postgres_url


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: str) -> str:
    name = f"shared_{os.getpid()}"  # each of pytest-xdist's workers has its own
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = postgres_server.replace("/postgres?", f"/{name}?")
    open_store(url, new_id=lambda: "LINEAGE").close()
    return url
