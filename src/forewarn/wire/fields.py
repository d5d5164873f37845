"""Fields of declarations: how each is read and written, and its JSON Schema.

A reader takes a written value and returns its meaning, or raises Invalid with what it expected. An error
about a field is an `InvalidField`, which names the path of the field.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from forewarn.core.errors import Invalid
from forewarn.core.text_formats import closest
from forewarn.core.time_formats import SPAN, format_span, parse_span
from forewarn.wire.invalid_field import InvalidField, within_field
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

# Azure allows 20 domains. This bound only catches typos.
MOST_DOMAINS = 10_000
# Enough for a petabyte in bytes. Sums of larger floats would not be exact.
MOST_OF_ANYTHING = 10**15
# Keys with a future meaning. They are refused until then, so that no one relies on them.
LATER = frozenset({"subscription_id", "limits"})


def as_json(value: Any) -> Any:
    """Return the JSON value of a field."""
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
    """A field of a declaration, which is also a reader."""

    read: Callable[[object], T]
    schema: Schema
    write: Callable[[Any], Any] = as_json
    nullable: bool = False

    def __call__(self, value: object) -> T:
        """Read a written value."""
        return self.read(value)

    def about(self, description: str) -> "Field[T]":
        """Return the field with a description."""
        return replace(self, schema={**self.schema, "description": description})


Fields: TypeAlias = Mapping[str, Field[Any]]


# Tables of fields


def read(table_: Mapping[str, object], readers: Readers, where: str) -> dict[str, Any]:
    """Read all fields of a table. In keys, `-` and `_` are equal. `where` begins the paths of its errors."""
    values: dict[str, Any] = {}
    for key, value in table_.items():
        name_ = key.replace("-", "_")
        with within_field(f"{where}{key}"):
            if name_ not in readers:
                raise Invalid(_unknown(name_, readers, like=key))
            if name_ in values:
                raise Invalid("expected it once, but it is also written with - or _")
            values[name_] = readers[name_](value)
    return values


def require(given: Mapping[str, object], expected: Mapping[str, str], where: str) -> None:
    """Refuse a table without a required field. `expected` describes the value of each."""
    for key, what in expected.items():
        if key not in given:
            raise InvalidField(f"{where}{key}", f"expected {what}, but it is missing")


def write(whole: object, fields: Fields) -> dict[str, Any]:
    """Return the JSON object of a value. It has no key for a None that could not be read back."""
    return {
        name_: field.write(value)
        for name_, field in fields.items()
        if (value := getattr(whole, name_)) is not None or field.nullable
    }


def object_schema(fields: Fields, required: Iterable[str] = ()) -> Schema:
    """Return the schema of a table."""
    properties = {name_: field.schema for name_, field in fields.items()}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def changes_schema(fields: Fields, *, but: Collection[str] = ()) -> Schema:
    """Return the schema of a change of a table. All fields except `but` can be null."""
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
    """Declare a table within a table. `make` builds its value from its fields."""

    def reader(value: object) -> T:
        given = read(table(value), fields, ".")
        require(given, required or {}, ".")
        return make(**given)

    schema = object_schema(fields, required or ())
    return Field(read=reader, schema=schema, write=lambda value: write(value, fields))


def several(each: Field[T], *, least: int = 0, most: int | None = None) -> Field[tuple[T, ...]]:
    """Declare a list."""

    def reader(value: object) -> tuple[T, ...]:
        values = sequence(value)
        if len(values) < least:
            raise Invalid("expected at least one item, got an empty list")
        if most is not None and len(values) > most:
            raise Invalid(f"expected at most {most} items, got {len(values)}")
        return tuple(numbered(each, index, one) for index, one in enumerate(values))

    bounds = ({"minItems": least} if least else {}) | ({} if most is None else {"maxItems": most})
    schema = {"type": "array", "items": each.schema, **bounds}
    return Field(read=reader, schema=schema, write=lambda values: [each.write(one) for one in values])


def numbered(reader: Callable[[object], T], index: int, value: object, *, called: str = "") -> T:
    """Read an item of a list. An error names its index, and its own name if it has one."""
    with within_field(f"[{index}]{called}"):
        return reader(value)


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
    """Declare named tables such as `[groups.web]`. `make` builds one from its name and fields."""

    def reader(value: object) -> dict[str, T]:
        tables = table(value, written=f"[{key}.{example}]")
        return {name_: one(name_, each) for name_, each in tables.items()}

    def one(name_: str, value: object) -> T:
        with within_field(f".{name_}"):
            given = read(table(value, written=f"[{key}.{name(name_)}]"), fields, ": ")
            require(given, required or {}, ": ")
            return make(name=name_, **given)

    return Field(read=reader, schema=_named_schema(object_schema(fields, required or ())))


def named_values(each: Field[T], *, example: str) -> Field[dict[str, T]]:
    """Declare a table of values by names that the user chooses."""

    def reader(value: object) -> dict[str, T]:
        found = {}
        for key, one in table(value, written=example).items():
            with within_field(f".{key}"):
                found[name(key)] = each(one)
        return found

    return Field(
        read=reader,
        schema=_named_schema(each.schema),
        write=lambda values: {key: each.write(one) for key, one in values.items()},
    )


def _named_schema(each: Schema) -> Schema:
    names = {"pattern": name.schema["pattern"]}
    return {"type": "object", "propertyNames": names, "additionalProperties": each}


# Types of fields


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Invalid(f"expected a table of texts, got {shown(value)}")
    for key, each in value.items():
        with within_field(f".{key}"):
            text(key)
            text(each)
    return dict(value)


def _amount(value: object) -> float:
    # In Python, bool is a subclass of int. The comparison excludes infinity and NaN.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_OF_ANYTHING:
        raise Invalid(f"expected a number from 0 to {MOST_OF_ANYTHING:,}, got {shown(value)}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"expected true or false, got {shown(value)}")
    return value


name = Field(read=read_name, schema={"type": "string", "pattern": f"^{NAME.pattern}$"})
text = Field(read=read_text, schema={"type": "string", "maxLength": LONGEST_TEXT})
# Addresses, MACs and GUIDs are read into one spelling, so that they can be compared.
address = Field(read=read_address, schema={"type": "string"})
mac = Field(read=read_mac, schema={"type": "string", "pattern": f"^({MAC.pattern})$"})
guid = Field(read=read_guid, schema={"type": "string", "pattern": f"^{GUID.pattern}$"})
uri = Field(
    read=read_uri, schema={"type": "string", "maxLength": LONGEST_TEXT, "pattern": f"^{SCHEME.pattern}://"}
)
tags = Field(read=_tags, schema={"type": "object", "additionalProperties": text.schema})
amount = Field(read=_amount, schema={"type": "number", "minimum": 0, "maximum": MOST_OF_ANYTHING})
flag = Field(read=_flag, schema={"type": "boolean"})


def table(value: object, where: str = "", *, written: str = "") -> Mapping[str, object]:
    """Read a table. `written` is an example for the error."""
    if not isinstance(value, Mapping):
        prefix, example = f"{where}: " if where else "", f" such as {written}" if written else ""
        raise Invalid(f"{prefix}expected a table{example}, got {shown(value)}")
    return value


def sequence(value: object, *, written: str = "") -> Sequence[object]:
    """Read a list. `written` is an example for the error."""
    if not isinstance(value, list | tuple):
        example = f" such as {written}" if written else ""
        raise Invalid(f"expected a list{example}, got {shown(value)}")
    return value


_SPAN: Schema = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{SPAN.pattern}$"}],
    "description": "Seconds, or a text such as 15m.",
}


def span(least: timedelta, most: timedelta) -> Field[timedelta]:
    """Declare a time span within bounds: seconds, or a text such as 15m."""

    def reader(value: object) -> timedelta:
        try:
            taken = parse_span(value)
        except ValueError:
            taken = None
        if taken is None or not least <= taken <= most:
            between = f"{format_span(least)} to {format_span(most)}"
            raise Invalid(f"expected a time from {between}, such as 90 or 15m, got {shown(value)}")
        return taken

    return Field(read=reader, schema=_SPAN)


def is_span(field: Field[Any]) -> bool:
    """Return whether a field holds a time span."""
    return bool(field.schema.get("anyOf") == _SPAN["anyOf"])


def whole_number(least: int, most: int) -> Field[int]:
    """Declare a whole number within bounds."""

    def reader(value: object) -> int:
        # In Python, bool is a subclass of int.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Invalid(f"expected a whole number from {least} to {most}, got {shown(value)}")
        return value

    return Field(read=reader, schema={"type": "integer", "minimum": least, "maximum": most})


domains = whole_number(1, MOST_DOMAINS)  # a number of domains
domain = whole_number(0, MOST_DOMAINS - 1)  # the index of a domain


def choice(members: Sequence[Choice]) -> Field[Choice]:
    """Declare one of several values."""
    known = {str(member): member for member in members}

    def reader(value: object) -> Choice:
        if not isinstance(value, str) or value not in known:
            raise Invalid(not_among(known, value))
        return known[value]

    return Field(read=reader, schema={"type": "string", "enum": list(known)})


def optional(reader: Callable[[object], T]) -> Field[T | None]:
    """Declare a field that can be null, or an empty text because TOML has no null."""
    schema = reader.schema if isinstance(reader, Field) else {}
    return Field(
        read=lambda value: None if value in (None, "") else reader(value),
        schema={"anyOf": [schema, {"enum": ["", None]}]},
        nullable=True,
    )
