"""The fields of a declaration: how each is read and written, and what JSON Schema says of it.

A reader takes what was written and returns what it means. One that refuses says what it expected; `read`
adds where that was.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any, Generic, TypeAlias, TypeVar

from forewarn.core.errors import Invalid
from forewarn.core.moments import SPAN, format_span, parse_span
from forewarn.core.spelling import closest

T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

Reader: TypeAlias = Callable[[object], Any]
Readers: TypeAlias = Mapping[str, Reader]
Schema: TypeAlias = dict[str, Any]

# The longest name a machine may have on Azure.
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
NAME_RULE = "1 to 64 letters, digits, dots, underscores and hyphens"
LONGEST_TEXT = 256
# Azure allows twenty; no rule of ours needs a bound, but a slip of the finger should be caught.
MOST_DOMAINS = 10_000
# A petabyte in bytes, and more; beyond that, sums would no longer be exact.
MOST_OF_ANYTHING = 10**15
# Pairs with colons or hyphens between them, threes of four with dots, or nothing between.
_MAC = re.compile(
    r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2}){5}"
    r"|[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{12}"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MAC_SEPARATORS = re.compile("[:.-]")
# A longer list of words is not read through.
_MANY = 10

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


def _name(value: object) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise Invalid(f"expected a name of {NAME_RULE}, got {shown(value)}")
    return value


def is_name(text_: str) -> bool:
    """Return whether something can be called so."""
    return NAME.fullmatch(text_) is not None


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise Invalid(f"expected one line of at most {LONGEST_TEXT} characters, got {shown(value)}")
    return value


def _address(value: object) -> str:
    try:
        parsed = ip_address(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or (isinstance(parsed, IPv6Address) and parsed.scope_id is not None):
        raise Invalid(f"expected an IPv4 or IPv6 address, got {shown(value)}")
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.compressed
    return parsed.compressed


def _uri(value: object) -> str:
    written = _text(value)
    scheme, _, rest = written.partition("://")
    if not _SCHEME.fullmatch(scheme) or not rest or " " in rest:
        raise Invalid(f"expected a URI, as qemu+ssh://host-1/system, got {shown(value)}")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if at and ":" in user:
        # What is declared is shown to operators, saved and copied into backups: no place for a secret.
        raise Invalid(
            "expected no password in it: keep that where the driver finds it by itself, as a key file"
        )
    return written


def _mac(value: object) -> str:
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise Invalid(f"expected a MAC address, as 52:54:00:12:34:56, got {shown(value)}")
    digits = _MAC_SEPARATORS.sub("", value).lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def _guid(value: object) -> str:
    if not isinstance(value, str) or not _GUID.fullmatch(value):
        raise Invalid(f"expected a UUID, as 4c4c4544-0051-4b10-8052-c8c04f4d4e32, got {shown(value)}")
    return value.lower()


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


name = Field(read=_name, schema={"type": "string", "pattern": f"^{NAME.pattern}$"})
text = Field(read=_text, schema={"type": "string", "maxLength": LONGEST_TEXT})
# Read into the one spelling in which addresses are compared.
address = Field(read=_address, schema={"type": "string"})
mac = Field(read=_mac, schema={"type": "string", "pattern": f"^({_MAC.pattern})$"})
# Read into lower case, in which ids of machines are compared.
guid = Field(read=_guid, schema={"type": "string", "pattern": f"^{_GUID.pattern}$"})
uri = Field(
    read=_uri, schema={"type": "string", "maxLength": LONGEST_TEXT, "pattern": f"^{_SCHEME.pattern}://"}
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


def choice(members: Sequence[Choice]) -> Field[Choice]:
    """Declare one of a few words."""
    known = {str(member): member for member in members}

    def reader(value: object) -> Choice:
        if not isinstance(value, str) or value not in known:
            raise Invalid(_not_among(known, value))
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


# Wording


def _not_among(known: Iterable[str], value: object) -> str:
    """Return which words may stand there or, of many, which may have been meant."""
    words = tuple(known)
    meant = closest(value, words) if isinstance(value, str) else None
    if meant is not None and len(words) > _MANY:
        return f"there is no {shown(value)}; did you mean {meant}?"
    question = "" if meant is None else f"; did you mean {meant}?"
    return f"expected {either(words)}, got {shown(value)}{question}"


def either(words: Iterable[str]) -> str:
    """List words as a person would."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """Show what was written, shortened if it is long."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    written = json.dumps(value, default=str)
    return written if len(written) <= LONGEST_TEXT else f"{written[:LONGEST_TEXT]}…"
