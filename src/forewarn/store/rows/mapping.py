"""How a class and a table belong together: a column for each field, and columns that follow from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, Select, Table, select

from forewarn.wire.codec import Codec

Value = TypeVar("Value")
Row = Sequence[Any]
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped(Generic[Value]):
    """A class of values as rows: the columns that are read, and how rows are read and written."""

    table: Table
    columns: tuple[Column[Any], ...]
    read: Callable[[Row], Value]  # of these columns; any that follow are passed over
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
    inside: str = "",
) -> Mapped[Value]:
    """Map the fields of a class to the columns that have their keys.

    `derived` are columns that follow from a value, or are not written as the field is. Fields that have no
    column are kept inside the JSON of another one, `inside`.
    """
    keys = codec.keys(kind)
    names = [key for key in keys if key in table.c]
    without_column = [key for key in keys if key not in table.c]

    def read(row: Row) -> Value:
        # By position: a whole fleet is read at every start.
        written = dict(zip(names, row, strict=False))
        for key in without_column:
            if key in written[inside]:
                written[key] = written[inside][key]
        return codec.read(kind, written)

    def write(value: Value) -> Columns:
        row: Columns = codec.write(value)
        for key in without_column:
            row[inside][key] = row.pop(key)
        for column, of in (derived or {}).items():
            row[column] = of(value)
        return row

    return Mapped(table=table, columns=tuple(table.c[name] for name in names), read=read, write=write)
