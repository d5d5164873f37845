"""Types of fields in queries and bodies, each with its check and its JSON schema."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from forewarn.core.basic_types import GroupName, HostName, MachineName, ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.redaction import unmarked
from forewarn.core.time_formats import format_span
from forewarn.wire.fields import Field, choice, name
from forewarn.wire.texts import is_guid, read_time, shown

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)

# The largest integer that a database column can hold.
LARGEST = 2**63 - 1
LONGEST_LINE = 1000

# Line breaks, control characters, and lone surrogates, which no database can store.
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"
_PART_OF_ID = re.compile(r"^[0-9A-Fa-f-]{1,36}$")
_WHOLE = re.compile(r"\s*([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0*)?\s*")
# Longer numbers exceed every bound. Python takes long to parse very long ones.
_LONGEST_WHOLE = 100
_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "0", "no", "off", "f", "n"), False),
}
# Keys are those of JSON Schema.
_BOUNDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": ("at least", operator.ge),
    "exclusiveMinimum": ("more than", operator.gt),
    "maximum": ("at most", operator.le),
}


def line(*, least: int = 0, most: int = LONGEST_LINE, **schema: Any) -> Field[str]:
    """Declare a one-line text."""

    def reader(value: object) -> str:
        if not isinstance(value, str):
            raise Invalid(f"expected a string, got {shown(value)}")
        if len(value) < least:
            raise Invalid("expected at least one character, got an empty string")
        if len(value) > most:
            raise Invalid(f"expected at most {most} characters, got {len(value)}")
        if _NOT_IN_A_LINE.search(value):
            raise Invalid(f"expected one line without control characters, got {shown(value)}")
        return value

    bounds = {"minLength": least, "maxLength": most} if least else {"maxLength": most}
    return Field(read=reader, schema={"type": "string", **bounds, "pattern": _LINE_PATTERN, **schema})


class FreeText(str):
    """A text that a person wrote, such as a reason. It may contain any name."""

    __slots__ = ()


def free_text(*, least: int = 0) -> Field[str]:
    """Declare a one-line text that a person writes."""
    written = line(least=least)
    return Field(read=lambda value: FreeText(unmarked(written(value))), schema=written.schema)


def _bounded(kind: str, expected: str, parse: Callable[[object], Any], **bounds: float) -> Field[Any]:
    """Declare a number. Errors show a number of seconds as a time span."""
    formatted = _span if expected == "a number" else shown

    def reader(value: object) -> Any:
        number = parse(value)
        if number is None:
            raise Invalid(f"expected {expected}, got {shown(value)}")
        if not math.isfinite(number):
            raise Invalid(f"expected a finite number, got {shown(value)}")
        for bound, limit in bounds.items():
            relation, holds = _BOUNDS[bound]
            if not holds(number, limit):
                raise Invalid(f"expected {relation} {formatted(limit)}, got {formatted(value)}")
        return number

    return Field(read=reader, schema={"type": kind, **bounds})


def whole(**bounds: int) -> Field[int]:
    """Declare a whole number with bounds, named as in JSON Schema."""
    return _bounded("integer", "a whole number", _integer, **bounds)


def whole_in_query(**bounds: int) -> Field[int]:
    """Declare a whole number in a query string."""
    return _bounded("integer", "a whole number", _integer_of_text, **bounds)


def seconds(**bounds: float) -> Field[float]:
    """Declare a number of seconds with bounds, named as in JSON Schema."""
    return _bounded("number", "a number", _float, **bounds)


def one_of(kind: type[Choice]) -> Field[Choice]:
    """Declare a member of an enum."""
    return Field(read=choice(tuple(kind)).read, schema={"$ref": kind})


def _time(value: object) -> datetime:
    if not isinstance(value, str):
        raise Invalid(f"expected a string, got {shown(value)}")
    return read_time(value)


def _flag_of_text(value: object) -> bool:
    flag = _FLAGS.get(str(value).lower())
    if flag is None:
        raise Invalid(f"expected true or false, got {shown(value)}")
    return flag


def _guid(value: object) -> str:
    if not isinstance(value, str) or not is_guid(value):
        raise Invalid(f"expected a GUID, got {shown(value)}")
    return value.upper()


def _part_of_id(value: object) -> str:
    text = LINE.read(value)
    if not _PART_OF_ID.fullmatch(text):
        raise Invalid(f"expected the beginning of an id such as 602D9444, got {shown(value)}")
    return text


NAME = name
_NAME: Any = name
PROJECT: Field[ProjectName] = _NAME
GROUP: Field[GroupName] = _NAME
HOST: Field[HostName] = _NAME
MACHINE: Field[MachineName] = _NAME
LINE = line()
GUID: Any = Field(read=_guid, schema=line(format="uuid").schema)
# Clients send cursors back unchanged.
CURSOR = line(pattern=r"^[A-Za-z0-9_-]+$")
ID_BEGINNING = Field(read=_part_of_id, schema={"type": "string", "pattern": _PART_OF_ID.pattern})
TIME = Field(read=_time, schema={**LINE.schema, "format": "date-time"})
FLAG_IN_QUERY = Field(read=_flag_of_text, schema={"type": "boolean"})


def _integer(value: object) -> int | None:
    # In Python, bool is a subclass of int.
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _integer_of_text(value: object) -> int | None:
    text = str(value)
    found = _WHOLE.fullmatch(text) if len(text) <= _LONGEST_WHOLE else None
    return int(found[1]) if found else None


def _float(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _span(value: object) -> str:
    try:
        return format_span(float(str(value)))
    except ValueError:
        return shown(value)
