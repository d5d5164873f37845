"""Many rows of one statement are written as SQLAlchemy would write them."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    create_engine,
    insert,
    select,
    update,
)

from forewarn.store.many_rows import execute_many

PLACES = Table(
    "places",
    MetaData(),
    Column("rack", Integer, primary_key=True),
    Column("name", Text, nullable=False, server_default="none"),
    Column("labels", JSON, nullable=False, server_default="{}"),
)
RENAMED = update(PLACES).where(PLACES.c.rack == bindparam("this_rack")).values(labels={"renamed": True})
ROWS = [
    {"rack": rack, "name": f"rack {rack}", "labels": {"side": rack % 2, "of": [rack]}} for rack in range(4)
]


@pytest.fixture
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as connection:
        PLACES.create(connection)
        yield connection


def written(connection: Connection) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(select(PLACES).order_by(PLACES.c.rack)).mappings()]


def test_values_are_written_as_their_columns_want_them(connection: Connection) -> None:
    execute_many(connection, insert(PLACES), ROWS)
    assert written(connection) == ROWS


def test_the_order_of_keys_in_a_row_does_not_matter(connection: Connection) -> None:
    turned = [dict(reversed(row.items())) if row["rack"] % 2 else row for row in ROWS]
    execute_many(connection, insert(PLACES), turned)
    assert written(connection) == ROWS


def test_columns_that_no_row_has_are_left_to_the_database(connection: Connection) -> None:
    execute_many(connection, insert(PLACES), [{"rack": 1}, {"rack": 2}])
    assert [(row["name"], row["labels"]) for row in written(connection)] == [("none", {})] * 2


def test_what_a_statement_says_itself_is_written_with_every_row(connection: Connection) -> None:
    execute_many(connection, insert(PLACES), ROWS)
    changed = execute_many(connection, RENAMED, [{"this_rack": rack, "name": "new"} for rack in (1, 2, 7)])
    assert changed.rowcount == 2
    assert [row["name"] for row in written(connection)] == ["rack 0", "new", "new", "rack 3"]
    assert written(connection)[1]["labels"] == {"renamed": True}


def test_a_variable_that_no_row_has_is_refused(connection: Connection) -> None:
    with pytest.raises(KeyError, match="this_rack"):
        execute_many(connection, RENAMED, [{"name": "a"}, {"name": "b"}])


def test_columns_whose_values_are_made_here_are_refused(connection: Connection) -> None:
    made = Table(
        "made", MetaData(), Column("id", Integer, primary_key=True), Column("at", Text, default="now")
    )
    made.create(connection)
    with pytest.raises(TypeError, match="made"):
        execute_many(connection, insert(made), [{"id": 1}, {"id": 2}])


def test_a_row_that_lacks_a_column_is_refused(connection: Connection) -> None:
    with pytest.raises(KeyError, match="name"):
        execute_many(connection, insert(PLACES), [ROWS[0], {"rack": 7, "labels": {}}])
