"""Queries for many keys send them as one value, whatever characters they contain."""

from collections.abc import Iterator

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    event,
    insert,
    select,
)

from forewarn.store.key_lists import key_list, one_found, one_of
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines

THINGS = Table("things", MetaData(), Column("name", Text), Column("number", Integer))
# These would end a list or a string early if the keys were part of the statement.
NAMES = ["a,b", 'say "a"', "it's", "{a}", "back\\slash", "NULL", "ü", "[1]", " "]


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    engines = create_engines(parse_database(url))
    with engines.writing.connect() as opened:
        THINGS.create(opened)
        opened.execute(insert(THINGS), [{"name": name, "number": n} for n, name in enumerate(NAMES)])
        yield opened
    engines.dispose()


def test_keys_are_found_whatever_characters_they_contain(connection: Connection) -> None:
    wanted = select(THINGS.c.name).where(one_of(THINGS.c.name, key_list("keys")))
    assert set(connection.scalars(wanted, {"keys": [*NAMES, "unknown"]})) == set(NAMES)
    for name in NAMES:
        assert connection.scalars(wanted, {"keys": [name]}).all() == [name]


def test_no_keys_find_nothing(connection: Connection) -> None:
    wanted = select(THINGS.c.name).where(one_of(THINGS.c.name, key_list("keys")))
    assert connection.scalars(wanted, {"keys": []}).all() == []


def test_keys_can_be_numbers(connection: Connection) -> None:
    wanted = select(THINGS.c.number).where(one_of(THINGS.c.number, [1, 3, 70_000, 1 << 40]))
    assert sorted(connection.scalars(wanted)) == [1, 3]


def test_keys_can_come_from_a_subquery(connection: Connection) -> None:
    numbers = THINGS.alias().c
    first = select(numbers.number).where(numbers.number < bindparam("below"))
    wanted = select(THINGS.c.name).where(one_found(THINGS.c.number, first))
    assert connection.scalars(wanted, {"below": 2}).all() == NAMES[:2]
    assert connection.scalars(wanted, {"below": 0}).all() == []


def test_the_statement_is_the_same_for_any_number_of_keys(connection: Connection) -> None:
    statements = set()

    @event.listens_for(connection, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.add(statement)

    wanted = select(THINGS.c.name).where(one_of(THINGS.c.name, key_list("keys")))
    for count in (1, 2, 500):
        connection.execute(wanted, {"keys": ["some"] * count})
    assert len(statements) == 1
