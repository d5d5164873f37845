"""The fields of a declaration: how each is read and written, and what JSON Schema says of it.

A reader takes what was written and returns what it means. One that refuses says what it expected; `read`
adds where that was.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from forewarn.core.errors import Invalid
from forewarn.core.time_formats import SPAN, format_span, parse_span
from forewarn.core.text_formats import closest
from forewarn.wire.texts import (
    GUID,
    LONGEST_TEXT,
    MAC,
    NAME,
    SCHEME,
    not_among,
    read_address,
    read_guid,
    read_mac,
    read_name,
    read_text,
    read_uri,
    shown,
)

T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

Reader: TypeAlias = Callable[[object], Any]
Readers: TypeAlias = Mapping[str, Reader]
Schema: TypeAlias = dict[str, Any]

# Azure allows twenty; no rule of ours needs a bound, but a slip of the finger should be caught.
MOST_DOMAINS = 10_000
# A petabyte in bytes, and more; beyond that, sums would no longer be exact.
MOST_OF_ANYTHING = 10**15
# Keys that will have a meaning; until then they are refused, so that they are not expected to have an effect.
LATER = frozenset({"subscription_id", "limits"})


class _Within(Invalid):
    """A refusal of something inside a field; its text begins with where in the field that is."""


def as_json(value: Any) -> Any:
    """Write a value as JSON has it."""
    match value:
        case StrEnum():
            return value.value
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return dict(value)
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Generic[T]):
    """A field of a declaration; a reader itself."""

    read: Callable[[object], T]
    schema: Schema
    write: Callable[[Any], Any] = as_json
    nullable: bool = False

    def __call__(self, value: object) -> T:
        """Read what was written."""
        return self.read(value)

    def about(self, description: str) -> "Field[T]":
        """Describe the field to people."""
        return replace(self, schema={**self.schema, "description": description})


Fields: TypeAlias = Mapping[str, Field[Any]]


# Tables of fields


def read(table_: Mapping[str, object], readers: Readers, where: str) -> dict[str, Any]:
    """Read all fields of a table; `-` and `_` in keys are the same."""
    values: dict[str, Any] = {}
    for key, value in table_.items():
        name_ = key.replace("-", "_")
        with inside(f"{where}{key}"):
            if name_ not in readers:
                raise Invalid(_unknown(name_, readers, like=key))
            if name_ in values:
                raise Invalid("expected it once, but it is also written with - or _")
            values[name_] = readers[name_](value)
    return values


def require(given: Mapping[str, object], expected: Mapping[str, str], where: str) -> None:
    """Refuse a table without one of the fields that it must have; of each is said what is expected there."""
    for key, what in expected.items():
        if key not in given:
            raise _Within(f"{where}{key}: expected {what}, but it is missing")


def write(whole: object, fields: Fields) -> dict[str, Any]:
    """Write what a value has for each field, the way it is read; nothing for a None that cannot be read."""
    return {
        name_: field.write(value)
        for name_, field in fields.items()
        if (value := getattr(whole, name_)) is not None or field.nullable
    }


def object_schema(fields: Fields, required: Iterable[str] = ()) -> Schema:
    """Write the schema of a table."""
    properties = {name_: field.schema for name_, field in fields.items()}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def changes_schema(fields: Fields, *, but: Collection[str] = ()) -> Schema:
    """Write the schema of a table that changes something: null clears a field, but for some."""
    return object_schema(
        {
            name_: field if field.nullable or name_ in but else replace(field, schema=_or_null(field.schema))
            for name_, field in fields.items()
        }
    )


def _or_null(schema: Schema) -> Schema:
    inner = {key: value for key, value in schema.items() if key != "description"}
    about = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [inner, {"type": "null"}], **about}


def part(fields: Fields, make: Callable[..., T], *, required: Mapping[str, str] | None = None) -> Field[T]:
    """Declare a table within a table, and what is made of its fields."""

    def reader(value: object) -> T:
        given = read(table(value), fields, ".")
        require(given, required or {}, ".")
        return make(**given)

    schema = object_schema(fields, required or ())
    return Field(read=reader, schema=schema, write=lambda value: write(value, fields))


def several(each: Field[T], *, most: int) -> Field[tuple[T, ...]]:
    """Declare a list."""

    def reader(value: object) -> tuple[T, ...]:
        values = sequence(value)
        if len(values) > most:
            raise Invalid(f"expected at most {most}")
        return tuple(numbered(each, index, one) for index, one in enumerate(values))

    schema = {"type": "array", "items": each.schema}
    return Field(read=reader, schema=schema, write=lambda values: [each.write(one) for one in values])


def numbered(reader: Callable[[object], T], index: int, value: object, *, called: str = "") -> T:
    """Read what stands at an index of a list; a refusal names that, and what is called so there."""
    with inside(f"[{index}]{called}"):
        return reader(value)


class inside:  # noqa: N801 - read as a word: `with inside(...)`
    """Names where a refusal was; no generator: for a large fleet that would cost as much as the rest."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, fault: BaseException | None, _traceback: object) -> None:
        if isinstance(fault, Invalid):
            between = "" if isinstance(fault, _Within) else ": "
            raise _Within(f"{self._where}{between}{fault}") from None


def _unknown(name_: str, readers: Readers, *, like: str) -> str:
    if name_ in LATER:
        return "not supported yet: leave it out"
    close = closest(name_, readers)
    if close:
        meant = close if "_" in like else close.replace("_", "-")
        return f"there is no such field; did you mean {meant}?"
    known = ", ".join(each.replace("_", "-") for each in readers)
    return f"there is no such field; expected {f'one of {known}' if known else 'an empty table'}"


def by_name(
    key: str,
    fields: Fields,
    make: Callable[..., T],
    *,
    example: str,
    required: Mapping[str, str] | None = None,
) -> Field[dict[str, T]]:
    """Declare tables that are named by their keys, as `[groups.web]`; `make` takes the name first."""

    def reader(value: object) -> dict[str, T]:
        tables = table(value, written=f"[{key}.{example}]")
        return {name_: one(name_, each) for name_, each in tables.items()}

    def one(name_: str, value: object) -> T:
        with inside(f".{name_}"):
            given = read(table(value, written=f"[{key}.{name(name_)}]"), fields, ": ")
            require(given, required or {}, ": ")
            return make(name_, **given)

    each = object_schema(fields, required or ())
    names = {"pattern": name.schema["pattern"]}
    return Field(read=reader, schema={"type": "object", "propertyNames": names, "additionalProperties": each})


# Kinds of fields


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Invalid(f"expected a table of texts, got {shown(value)}")
    for key, each in value.items():
        try:
            text(key)
            text(each)
        except Invalid as refusal:
            raise Invalid(f"{key}: {refusal}") from None
    return dict(value)


def amounts(each: Field[T]) -> Field[dict[str, T]]:
    """Declare how much there is of things, by names of one's own."""

    def reader(value: object) -> dict[str, T]:
        given = table(value, written="{ vcpus = 8, memory = 32 }")
        found = {}
        for key, amount_ in given.items():
            with inside(f".{key}"):
                found[name(key)] = each(amount_)
        return found

    return Field(
        read=reader,
        schema={
            "type": "object",
            "propertyNames": {"pattern": name.schema["pattern"]},
            "additionalProperties": each.schema,
        },
        write=lambda values: {key: each.write(amount_) for key, amount_ in values.items()},
    )


def _amount(value: object) -> float:
    # True is an int to Python, but is not written for one; nor are infinity and what is no number.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_OF_ANYTHING:
        raise Invalid(f"expected a number from 0 to {MOST_OF_ANYTHING:,}, got {shown(value)}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"expected true or false, got {shown(value)}")
    return value


name = Field(read=read_name, schema={"type": "string", "pattern": f"^{NAME.pattern}$"})
text = Field(read=read_text, schema={"type": "string", "maxLength": LONGEST_TEXT})
# Read into the one spelling in which addresses are compared.
address = Field(read=read_address, schema={"type": "string"})
mac = Field(read=read_mac, schema={"type": "string", "pattern": f"^({MAC.pattern})$"})
# Read into lower case, in which ids of machines are compared.
guid = Field(read=read_guid, schema={"type": "string", "pattern": f"^{GUID.pattern}$"})
uri = Field(
    read=read_uri, schema={"type": "string", "maxLength": LONGEST_TEXT, "pattern": f"^{SCHEME.pattern}://"}
)
tags = Field(read=_tags, schema={"type": "object", "additionalProperties": text.schema})
amount = Field(read=_amount, schema={"type": "number", "minimum": 0, "maximum": MOST_OF_ANYTHING})
flag = Field(read=_flag, schema={"type": "boolean"})


def table(value: object, where: str = "", *, written: str = "") -> Mapping[str, object]:
    """Read a table; a refusal shows how one is written, if that is said."""
    if not isinstance(value, Mapping):
        prefix, example = f"{where}: " if where else "", f", as {written}" if written else ""
        raise Invalid(f"{prefix}expected a table{example}, got {shown(value)}")
    return value


def sequence(value: object, *, written: str = "") -> Sequence[object]:
    """Read a list; a refusal shows how one is written, if that is said."""
    if not isinstance(value, list | tuple):
        example = f", as {written}" if written else ""
        raise Invalid(f"expected a list{example}, got {shown(value)}")
    return value


_SPAN: Schema = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{SPAN.pattern}$"}],
    "description": "Seconds, or a text such as 15m.",
}


def span(least: timedelta, most: timedelta) -> Field[timedelta]:
    """Declare a time between two: seconds, or a text such as 15m."""

    def reader(value: object) -> timedelta:
        try:
            taken = parse_span(value)
        except ValueError:
            taken = None
        if taken is None or not least <= taken <= most:
            between = f"{format_span(least)} to {format_span(most)}"
            raise Invalid(f"expected a time from {between}, as 90 or 15m, got {shown(value)}")
        return taken

    return Field(read=reader, schema=_SPAN)


def is_span(field: Field[Any]) -> bool:
    """Return whether a field holds a time."""
    return bool(field.schema.get("anyOf") == _SPAN["anyOf"])


def whole_number(least: int, most: int) -> Field[int]:
    """Declare a whole number between two."""

    def reader(value: object) -> int:
        # True is an int to Python, but is not written for one.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Invalid(f"expected a whole number from {least} to {most}, got {shown(value)}")
        return value

    return Field(read=reader, schema={"type": "integer", "minimum": least, "maximum": most})


domains = whole_number(1, MOST_DOMAINS)  # how many there are
domain = whole_number(0, MOST_DOMAINS - 1)  # one of them


def choice(members: Sequence[Choice]) -> Field[Choice]:
    """Declare one of a few words."""
    known = {str(member): member for member in members}

    def reader(value: object) -> Choice:
        if not isinstance(value, str) or value not in known:
            raise Invalid(not_among(known, value))
        return known[value]

    return Field(read=reader, schema={"type": "string", "enum": list(known)})


def optional(reader: Callable[[object], T]) -> Field[T | None]:
    """Let null stand for nothing, and an empty text too: TOML has no null."""
    schema = reader.schema if isinstance(reader, Field) else {}
    return Field(
        read=lambda value: None if value in (None, "") else reader(value),
        schema={"anyOf": [schema, {"enum": ["", None]}]},
        nullable=True,
    )
