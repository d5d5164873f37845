"""Reading of settings. A flag overrides the environment, which overrides the file.

`[guest] rate` in the file is `FOREWARN_GUEST_RATE` in the environment. Unknown keys in the file are errors.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from forewarn.config import Settings
from forewarn.core.errors import Invalid
from forewarn.core.policy import SET_ELSEWHERE
from forewarn.core.text_formats import closest, hint
from forewarn.core.time_formats import parse_span
from forewarn.core.toml_text import parse_toml

PREFIX = "FOREWARN_"
# Variables of the command line and the tests, and those that handlers and gated commands get.
OTHERS = tuple(
    f"{PREFIX}{name}"
    for name in (
        "SERVER",
        "TOKEN",
        "CA",
        "ENDPOINT",
        "ORDER",
        "MACHINE",
        "EVENT_",
        "SECONDS_LEFT",
        "ATTEMPT",
        "TEST_",
    )
)
FOREVER = "forever"

T = TypeVar("T")


def load(file: str | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Read settings from the text of a file, the environment and flags.

    Flags have the names of keys: `database`, `guest.listen`.
    """
    table = {} if file is None else parse_toml(file, name="the settings file")
    settings = _from_table(Settings(), table, "")
    settings = _from_environment(settings, environment, PREFIX)
    for name, value in flags.items():
        if value is not None:
            settings = _with(settings, name.split("."), value, f"--{name.split('.')[0]}")
    return settings


def read_table(defaults: T, table: Mapping[str, Any], *, where: str) -> T:
    """Read a table into a dataclass by its types; raise Invalid that names the wrong key."""
    return _from_table(defaults, table, where)


def unknown_names(environment: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable of the environment that looks like a setting but is none."""
    known = _names(Settings(), PREFIX)
    warnings = []
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in known or name.startswith(OTHERS):
            continue
        # Without the common prefix, which would make all names similar.
        meant = closest(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
        suggestion = "" if meant is None else f"; did you mean {PREFIX}{meant}?"
        warnings.append(f"{name} is not a setting and is ignored{suggestion}")
    return warnings


def _names(settings: Any, prefix: str) -> list[str]:
    names = []
    for each in _fields(settings):
        name, present = f"{prefix}{each.name.upper()}", getattr(settings, each.name)
        names += _names(present, f"{name}_") if is_dataclass(present) else [name]
    return names


def _from_table(settings: T, table: Mapping[str, Any], where: str) -> T:
    names = {each.name: each for each in _fields(settings)}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in names:
            raise Invalid(f"{where}{key}: {_unknown(key, names)}")
        present = getattr(settings, name)
        if is_dataclass(present):
            if not isinstance(value, Mapping):
                raise Invalid(f"{where}{key}: expected a table")
            settings = _replaced(settings, name, _from_table(present, value, f"{where}{key}."))
        else:
            settings = _with(settings, [name], value, f"{where}{key}")
    return settings


def _from_environment(settings: T, environment: Mapping[str, str], prefix: str) -> T:
    for each in _fields(settings):
        name = f"{prefix}{each.name.upper()}"
        present = getattr(settings, each.name)
        if is_dataclass(present):
            settings = _replaced(settings, each.name, _from_environment(present, environment, f"{name}_"))
        elif name in environment:
            settings = _with(settings, [each.name], environment[name], name)
    return settings


def _with(settings: T, path: list[str], value: Any, where: str) -> T:
    name, *rest = path
    if rest:
        return _replaced(settings, name, _with(getattr(settings, name), rest, value, where))
    kind = get_type_hints(type(settings))[name]
    try:
        return _replaced(settings, name, _converted(kind, value))
    except (TypeError, ValueError) as error:
        raise Invalid(f"{where}: {error}, got {value!r}") from None


def _converted(kind: Any, value: Any) -> Any:
    if kind == timedelta | None:
        return None if value == FOREVER else parse_span(value)
    if kind is timedelta:
        return _not_negative(parse_span(value))
    if kind is bool:
        return _flag(value)
    if kind in (int, float):
        return _number(kind, value)
    if kind == tuple[str, ...]:
        return _texts(value)
    if get_origin(kind) is Mapping:
        return _tables(value)
    if get_origin(kind) is Literal:
        return _choice(get_args(kind), value)
    return _text(value)


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta():
        raise ValueError("expected a time that is not negative")
    return value


def _flag(value: Any) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in known:
        raise ValueError("expected true or false")
    return known[str(value).lower()]


def _number(kind: type[int] | type[float], value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number")  # noqa: TRY004 - `_with` handles ValueError
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("expected a number") from None
    if isinstance(value, float) and number != value:
        raise ValueError("expected a whole number")
    if not 0 <= number < float("inf"):
        raise ValueError("expected a number that is not negative")
    return number


def _choice(known: tuple[str, ...], value: Any) -> str:
    if value not in known:
        raise ValueError(f"expected {', '.join(known[:-1])} or {known[-1]}")
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(each.strip() for each in _text(value).split(","))
    if not isinstance(value, list | tuple):
        raise ValueError("expected a list of texts")  # noqa: TRY004 - `_with` handles ValueError
    return tuple(_text(each) for each in value)


def _tables(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
        raise ValueError("expected a table for each, in the file")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - `_with` handles ValueError
    if "\0" in value:
        raise ValueError("expected a text without NUL")
    return value


def _unknown(key: str, names: Mapping[str, Any]) -> str:
    return f"there is no such setting{hint(key, [name.replace('_', '-') for name in names])}"


def _fields(settings: Any) -> tuple[Any, ...]:
    return tuple(each for each in fields(settings) if each.metadata != SET_ELSEWHERE)


def _replaced(settings: T, name: str, value: Any) -> T:
    changed: T = replace(settings, **{name: value})  # type: ignore[type-var]
    return changed
