"""What tables are made of: the types of their columns, and indexes of some of their rows."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    MetaData,
    Text,
    case,
    cast,
    event,
    func,
    literal_column,
)

metadata = MetaData()

# PostgreSQL would otherwise sort by the locale of the database, and pages would differ from SQLite's.
NAME = Text().with_variant(Text(collation="C"), "postgresql")
TIME = BigInteger()
# On SQLite only this spelling makes the number the row's own id, without a second index.
NUMBER_KEY = BigInteger().with_variant(Integer(), "sqlite")


def index_where(index: str, *columns: Column[Any], only: ColumnElement[bool]) -> Index:
    """Make an index of those rows of a table that meet a condition."""
    return Index(index, *columns, info={"only": only})


# What is open is found by a key in one of two ways, which leave PostgreSQL no choice. Asked for the key and
# for `ended_at IS NULL`, it might read all that is open along another index, and look for the key in that: by
# the statistics of a quiet hour there is hardly anything open.


def while_open(ended_at: Column[int], key: Column[str]) -> ColumnElement[str]:
    """Return a key while something is open, and none afterwards: what an index of its own has."""
    # Of an expression SQLite does not know that it is a text, and would compare it with none by its index.
    return cast(case((ended_at.is_(None), key)), Text)


def is_open(ended_at: Column[int]) -> ColumnElement[bool]:
    """Return whether something is open, in words that no index has: for what another condition finds."""
    return func.coalesce(ended_at, literal_column("0")) == literal_column("0")


@event.listens_for(metadata, "before_create")
def _limit_indexes(_: MetaData, connection: Connection, **__: object) -> None:
    """Limit indexes to their rows, in the words of this database: those of another would load its dialect."""
    for index in (index for table in metadata.sorted_tables for index in table.indexes):
        if "only" in index.info:
            index.dialect_kwargs[f"{connection.dialect.name}_where"] = index.info["only"]
