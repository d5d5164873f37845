"""What pydantic finds wrong with a request, in the words of the API."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from forewarn.core.moments import format_span
from forewarn.core.spelling import closest, hint
from forewarn.wire.fields import shown

# Where pydantic says what the limit is, and what kind of limit that is.
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_TYPES = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text",
    "list_type": "a list",
}
# A longer list than that is not read through: the message names the word that is close.
_MANY = 10


def explain(error: Mapping[str, Any]) -> str:
    """Return the message for an error of pydantic."""
    part, *path = error["loc"]
    field = _field(path) or f"the {part}"
    match error["type"]:
        case "json_invalid":
            return f"the body is not JSON: {error['ctx']['error']} at character {error['loc'][-1]}"
        case "extra_forbidden":
            return f"{field}: there is no such {'key in the body' if part == 'body' else 'query parameter'}"
        case "missing":
            return f"{field}: this is missing"
        case _:
            return f"{field}: {_wrong(error, in_words=_seconds if field.endswith('seconds') else shown)}"


def _wrong(error: Mapping[str, Any], *, in_words: Callable[[object], str]) -> str:
    """Return what was expected, and what came instead."""
    kind, got = error["type"], error.get("input")
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"expected {words} {in_words(error['ctx'][key])}, got {in_words(got)}"
    if kind in _TYPES:
        return f"expected {_TYPES[kind]}, got {shown(got)}"
    match kind:
        case "enum" | "literal_error":
            return _choice(re.findall(r"'([^']*)'", error["ctx"]["expected"]), got)
        case "string_too_short" | "too_short":
            return "expected something, got nothing"
        case "string_too_long" | "too_long":
            what = "characters" if isinstance(got, str) else "of them"
            return f"expected at most {error['ctx']['max_length']} {what}, got {len(got or ())}"
        case _:
            message = str(error["msg"]).removeprefix("Value error, ")
            expected = message.replace("Input should be", "expected", 1)
            return f"{expected[:1].lower()}{expected[1:]}, got {shown(got)}"


def _field(path: Sequence[str | int]) -> str:
    """Write where something is: `hosts[2]`, `kinds[0]`."""
    written = ""
    for part in path:
        written += f"[{part}]" if isinstance(part, int) else f".{part}" if written else part
    return written


def _choice(known: Sequence[str], got: object) -> str:
    """Return which words may stand there or, of many, which may have been meant."""
    meant = closest(got, known) if isinstance(got, str) and len(known) > _MANY else None
    if meant is not None:
        return f"there is no {shown(got)}; did you mean {meant}?"
    *most, last = known
    words = f"{', '.join(most)} or {last}" if most else last
    return f"expected {words}, got {shown(got)}{hint(got, known) if isinstance(got, str) else ''}"


def _seconds(value: object) -> str:
    try:
        return format_span(float(str(value)))
    except ValueError:
        return shown(value)
