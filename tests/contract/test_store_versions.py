"""Every row that an older version has written is read, and would be written again as it stands."""

from typing import Any

import pytest
from sqlalchemy import select, text

from forewarn.store import tables
from forewarn.store.opening.database import create_engines, parse_database
from forewarn.store.rows import stored
from forewarn.store.rows.mapping import Mapped
from forewarn.store.rows.meta import META
from forewarn.store.sql import open_store
from tests.fixtures.versions import VERSIONS, put_back

MAPPED = {each.table.name: each for each in [*vars(stored).values(), META] if isinstance(each, Mapped)}

# The tables that a version did not know, and so has left nothing in.
CAME_AFTER = {"0.1": {"sessions", "rehearsals"}, "schema-0021": {"rehearsals"}}


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_older_versions_are_written_again_as_they_are(url: str, version: str) -> None:
    put_back(version, url)
    open_store(url, new_id=lambda: "NEW").close()
    for mapped in MAPPED.values():
        rows = all_rows(url, mapped)
        is_new = mapped.table.name in CAME_AFTER.get(version, set())
        assert bool(rows) is not is_new, f"the fixture has rows of {mapped.table.name}: {len(rows)}"
        for row in rows:
            again = mapped.write(mapped.read([row[column.name] for column in mapped.columns]))
            assert again == {name: row[name] for name in again}


def test_removals_that_an_older_version_has_kept_for_long_are_forgotten(url: str) -> None:
    put_back("schema-0021", url)
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        last = connection.scalar(text("UPDATE meta SET number = number + 100000 RETURNING number"))
    store = open_store(url, new_id=lambda: "NEW")
    with engines.reading.connect() as connection:
        kinds = set(connection.scalars(select(tables.tombstones.c.kind)))
    engines.dispose()
    with store.read() as snapshot:
        assert snapshot.feed.since(last - 100_001).whole
        assert not snapshot.feed.since(last - 100_000).whole
    store.close()
    assert kinds == {"hosts"}


def all_rows(url: str, mapped: Mapped[Any]) -> list[dict[str, Any]]:
    engines = create_engines(parse_database(url))
    with engines.reading.connect() as connection:
        rows = [dict(row) for row in connection.execute(select(mapped.table)).mappings()]
    engines.dispose()
    return rows
