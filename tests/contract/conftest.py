from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.store.sql import SqlStore, open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty database, of each kind in turn."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return str(request.getfixturevalue("sqlite_url"))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'forewarn.db'}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with_lineage = open_store(url, new_id=lambda: "LINEAGE")
    yield with_lineage
    with_lineage.close()
