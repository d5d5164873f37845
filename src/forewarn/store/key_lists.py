"""Looking for many keys at once: they are given as one value.

As a list of variables each number of keys would make a statement of its own, which SQLAlchemy, the driver and
the database would all compile anew: for hundreds of keys that takes longer than finding the rows.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Dialect, Select, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

Keys = Sequence[str] | Sequence[int]


class _KeyList(TypeDecorator[Keys]):
    """Keys as a database takes them: an array, or JSON."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # psycopg knows by the keys what they are an array of.
        return dialect.type_descriptor(NullType() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Keys | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return json.dumps(value)


class _OneOf(FunctionElement[Any]):
    """Whether a column is one of the keys of a list."""

    # SQLite has no booleans: of one that says it is, SQLAlchemy would ask whether it equals 1, and then no
    # index is used.
    type = NullType()
    inherit_cache = True


@compiles(_OneOf, "postgresql")
def _any_of_array(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY ({keys})"


@compiles(_OneOf, "sqlite")
def _in_json(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({keys}))"  # noqa: S608 - both are compiled


class _OneFound(FunctionElement[Any]):
    """Whether a column is one of the keys that a query finds."""

    type = NullType()
    inherit_cache = True


@compiles(_OneFound, "postgresql")
def _any_of_found(element: _OneFound, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY (ARRAY{keys})"


@compiles(_OneFound, "sqlite")
def _in_found(element: _OneFound, compiler: SQLCompiler, **options: Any) -> str:
    column, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN {keys}"


def key_list(name: str) -> BindParameter[Any]:
    """Return a variable whose value is a list of keys."""
    return bindparam(name, type_=_KeyList())


def one_of(column: ColumnElement[Any], keys: BindParameter[Any] | Iterable[str | int]) -> ColumnElement[bool]:
    """Return the condition that a column is one of some keys, or of a `key_list` that is given later."""
    if not isinstance(keys, BindParameter):
        keys = bindparam(None, list(keys), type_=_KeyList(), unique=True)
    return _OneOf(column, keys)


def one_found(column: ColumnElement[Any], keys: Select[Any]) -> ColumnElement[bool]:
    """Return the condition that a column is one of the keys that a query finds.

    They are found first. Of a mere IN, PostgreSQL may make a join that begins with all that has the column.
    """
    return _OneFound(column, keys.scalar_subquery())
