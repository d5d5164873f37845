"""Conditions on many keys, which are passed as one value.

With a variable for each key, each number of keys makes a statement of its own. SQLAlchemy, the driver and the
database compile each of them, which for hundreds of keys takes longer than the search.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Dialect, ScalarSelect, Select, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

Keys = Sequence[str] | Sequence[int]
Key = TypeVar("Key")

# Larger lists are no faster, and one long statement would block other callers.
_MOST_KEYS = 5_000


class _KeyList(TypeDecorator[Keys]):
    """A list of keys: an array in PostgreSQL, JSON in SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # psycopg derives the type of the array from the keys.
        return dialect.type_descriptor(NullType() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Keys | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return json.dumps(value)


class _OneOf(FunctionElement[Any]):
    """The condition that a column is one of the keys of a list, or of those that a query finds."""

    # Not Boolean: on SQLite, SQLAlchemy would compare a boolean with 1, and SQLite would use no index.
    type = NullType()
    inherit_cache = True


@compiles(_OneOf, "postgresql")
def _any_of_array(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY ({'ARRAY' if _is_query(element) else ''}{keys})"


@compiles(_OneOf, "sqlite")
def _in_json(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    if _is_query(element):
        return f"{column} IN {keys}"
    return f"{column} IN (SELECT value FROM json_each({keys}))"  # noqa: S608 - both are compiled


def _is_query(element: _OneOf) -> bool:
    return isinstance(list(element.clauses)[1], ScalarSelect)


def key_list(name: str) -> BindParameter[Any]:
    """Return a bind parameter for a list of keys."""
    return bindparam(name, type_=_KeyList())


def one_of(column: ColumnElement[Any], keys: BindParameter[Any] | Iterable[str | int]) -> ColumnElement[bool]:
    """Return the condition that a column is one of some keys, or of a `key_list` parameter."""
    if not isinstance(keys, BindParameter):
        keys = bindparam(None, list(keys), type_=_KeyList(), unique=True)
    return _OneOf(column, keys)


def one_found(column: ColumnElement[Any], keys: Select[Any]) -> ColumnElement[bool]:
    """Return the condition that a column is one of the keys that a query finds.

    The database finds the keys first. For a plain IN, PostgreSQL may plan a join that reads the whole table.
    """
    return _OneOf(column, keys.scalar_subquery())


def for_keys(query: Select[Any], column: ColumnElement[Any]) -> Select[Any]:
    """Narrow a query to the rows whose column is one of the keys that the caller passes as `keys`."""
    return query.where(one_of(column, key_list("keys")))


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Split keys into lists that fit one statement."""
    rest = iter(keys)
    while chunk := list(islice(rest, _MOST_KEYS)):
        yield chunk
