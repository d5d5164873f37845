"""Mapping between classes and tables: a column for each field, and derived columns."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from sqlalchemy import Column, Select, Table, select

from forewarn.wire.codec import Codec

Value = TypeVar("Value")
Row = Sequence[Any]
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped(Generic[Value]):
    """How the values of a class are read from rows and written to them."""

    table: Table
    columns: tuple[Column[Any], ...]
    read: Callable[[Row], Value]  # ignores further columns
    write: Callable[[Value], Columns]

    def select(self) -> Select[Any]:
        """Select all rows."""
        return select(*self.columns)


def mapped(
    kind: type[Value],
    table: Table,
    codec: Codec,
    *,
    derived: Mapping[str, Callable[[Value], Any]] | None = None,
    distinct: Collection[str] | None = None,
) -> Mapped[Value]:
    """Map the fields of a class to the columns that have their keys.

    `derived` computes columns from a value. `distinct` names the text fields that differ in every value; all
    other texts are interned, which saves memory for a whole fleet. None interns no text.
    """
    names = [field.name for field in _fields(kind)]
    width = len(names)
    # Only fields whose column holds another type have a reader: every start reads the whole fleet.
    readers = [
        (place, reader)
        for place, field in enumerate(_fields(kind))
        if (
            reader := _reader(
                field, codec, intern=field.name not in (names if distinct is None else distinct)
            )
        )
    ]

    def read(row: Row) -> Value:
        values = list(row[:width])
        for place, reader in readers:
            values[place] = reader(values[place])
        return kind(**dict(zip(names, values, strict=True)))

    def write(value: Value) -> Columns:
        row: Columns = codec.write(value)
        for column, of in (derived or {}).items():
            row[column] = of(value)
        return row

    return Mapped(
        table=table, columns=tuple(table.c[key] for key in codec.keys(kind)), read=read, write=write
    )


def _fields(kind: type) -> tuple[Field[Any], ...]:
    return fields(kind)


def _reader(field: Field[Any], codec: Codec, *, intern: bool) -> Callable[[Any], Any] | None:
    hint: Any = field.type
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = {getattr(choice, "__supertype__", choice) for choice in choices}
    if intern and kinds <= {str, NoneType}:
        return _interned
    if kinds <= _AS_THEY_ARE:
        return None
    if kinds <= _MAPPINGS:
        return _sharing_empty
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return cache(hint)
    return codec.reader(hint)


_AS_THEY_ARE = {str, int, bool, NoneType}
# Most are empty, and a fleet has many, so the empty ones share one object.
_MAPPINGS = {Mapping[str, str], Mapping[str, float]}
_EMPTY: Mapping[str, Any] = {}


def _sharing_empty(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping or _EMPTY


def _interned(text: str | None) -> str | None:
    return None if text is None else sys.intern(text)


# Times are stored as microseconds since 1970, which both databases store exactly.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return the microseconds of a time; ValueError if it has no time zone."""
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone")
    return (at - _EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """Return the time of microseconds."""
    return _EPOCH + timedelta(microseconds=count)


def micros_or_none(at: datetime | None) -> int | None:
    """Return the microseconds of a time, or None."""
    return None if at is None else micros(at)


def moment_or_none(count: int | None) -> datetime | None:
    """Return the time of microseconds, or None."""
    return None if count is None else moment(count)
