"""The fields of a declaration: each reader takes what was written and returns what it means.

A reader that refuses says what it expected; `read` adds where that was.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any, TypeAlias

from forewarn.core.errors import Invalid
from forewarn.core.moments import format_span
from forewarn.core.spelling import closest, hint

Reader: TypeAlias = Callable[[object], Any]
Readers: TypeAlias = Mapping[str, Reader]

# The longest name a machine may have on Azure.
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
NAME_RULE = "1 to 64 letters, digits, dots, underscores and hyphens"
LONGEST_TEXT = 256
SPAN_PART = re.compile(r"(\d{1,9})([smhd])")
SPAN = re.compile(r"(?:\d{1,9}[smhd])+")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_SECONDS = 1e9
# Azure allows twenty; no rule of ours needs a bound, but a slip of the finger should be caught.
MOST_DOMAINS = 10_000

# Keys that have a meaning already, so that whoever writes them today should not wait for an effect.
LATER = frozenset({"subscription_id", "limits"})


def read(table_: Mapping[str, object], readers: Readers, where: str) -> dict[str, Any]:
    """Read all fields of a table; `-` and `_` in keys are the same."""
    values: dict[str, Any] = {}
    for key, value in table_.items():
        name_ = key.replace("-", "_")
        if name_ not in readers:
            raise Invalid(f"{where}{key}: {_unknown(name_, readers, like=key)}")
        if name_ in values:
            raise Invalid(f"{where}{key}: expected it once, but it is also written with - or _")
        try:
            values[name_] = readers[name_](value)
        except Invalid as refusal:
            raise Invalid(f"{where}{key}: {refusal}") from None
    return values


def _unknown(name_: str, readers: Readers, *, like: str) -> str:
    if name_ in LATER:
        return "not supported yet: leave it out"
    close = closest(name_, readers)
    if close:
        meant = close if "_" in like else close.replace("_", "-")
        return f"there is no such field; did you mean {meant}?"
    known = ", ".join(each.replace("_", "-") for each in readers)
    return f"there is no such field; expected {f'one of {known}' if known else 'an empty table'}"


def is_name(text_: str) -> bool:
    """Say whether something can be called so."""
    return NAME.fullmatch(text_) is not None


def named(text_: str, where: str) -> str:
    """Take a key that names something."""
    if not is_name(text_):
        raise Invalid(f"{where}: expected a name of {NAME_RULE}, got {shown(text_)}")
    return text_


def name(value: object) -> str:
    """Read a name."""
    if not isinstance(value, str) or not is_name(value):
        raise Invalid(f"expected a name of {NAME_RULE}, got {shown(value)}")
    return value


def text(value: object) -> str:
    """Read one line of text."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise Invalid(f"expected one line of at most {LONGEST_TEXT} characters, got {shown(value)}")
    return value


def address(value: object) -> str:
    """Read an IP address into the one spelling in which addresses are compared."""
    try:
        parsed = ip_address(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or (isinstance(parsed, IPv6Address) and parsed.scope_id is not None):
        raise Invalid(f"expected an IPv4 or IPv6 address, got {shown(value)}")
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.compressed
    return parsed.compressed


def tags(value: object) -> dict[str, str]:
    """Read a table of texts."""
    if not isinstance(value, Mapping):
        raise Invalid(f"expected a table of texts, got {shown(value)}")
    for key, each in value.items():
        try:
            text(key)
            text(each)
        except Invalid as refusal:
            raise Invalid(f"{key}: {refusal}") from None
    return dict(value)


def table(value: object, where: str = "", *, written: str = "") -> Mapping[str, object]:
    """Read a table; a refusal shows how one is written, if that is said."""
    if not isinstance(value, Mapping):
        prefix, example = f"{where}: " if where else "", f", as {written}" if written else ""
        raise Invalid(f"{prefix}expected a table{example}, got {shown(value)}")
    return value


def flag(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise Invalid(f"expected true or false, got {shown(value)}")
    return value


def span(least: timedelta, most: timedelta) -> Reader:
    """Make a reader of times between two: seconds, or a text such as 15m."""

    def reader(value: object) -> timedelta:
        taken = _span(value)
        if taken is None or not least <= taken <= most:
            between = f"{format_span(least)} to {format_span(most)}"
            raise Invalid(f"expected a time from {between}, as 90 or 15m, got {shown(value)}")
        return taken

    return reader


def _span(value: object) -> timedelta | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST_SECONDS:
        return timedelta(seconds=value)
    if not isinstance(value, str) or not SPAN.fullmatch(value):
        return None
    parts = SPAN_PART.findall(value)
    return timedelta(seconds=sum(int(count) * UNITS[unit] for count, unit in parts))


def sequence(value: object, *, written: str = "") -> Sequence[object]:
    """Read a list; a refusal shows how one is written, if that is said."""
    if not isinstance(value, list | tuple):
        example = f", as {written}" if written else ""
        raise Invalid(f"expected a list{example}, got {shown(value)}")
    return value


def whole_number(least: int, most: int) -> Reader:
    """Make a reader of whole numbers between two."""

    def reader(value: object) -> int:
        # True is an int to Python, but not to whoever wrote it.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Invalid(f"expected a whole number from {least} to {most}, got {shown(value)}")
        return value

    return reader


def choice(members: Sequence[StrEnum]) -> Reader:
    """Make a reader of one of a few words."""
    known = {member.value: member for member in members}

    def reader(value: object) -> StrEnum:
        if not isinstance(value, str) or value not in known:
            meant = hint(value, known) if isinstance(value, str) else ""
            raise Invalid(f"expected {either(members)}, got {shown(value)}{meant}")
        return known[value]

    return reader


def optional(reader: Reader) -> Reader:
    """Make a reader that takes null for nothing, and an empty text too: TOML has no null."""
    return lambda value: None if value in (None, "") else reader(value)


def either(members: Iterable[StrEnum]) -> str:
    """List words as a person would."""
    *most, last = [member.value for member in members]
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """Show what was written, shortened if it is long."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    written = json.dumps(value, default=str)
    return written if len(written) <= LONGEST_TEXT else f"{written[:LONGEST_TEXT]}…"
