"""Parse TOML and reject values that forewarn cannot use."""

import tomllib
from math import isfinite
from typing import Any

from forewarn.core.errors import Invalid

# No file of forewarn has more than six levels; much deeper values overflow the stack.
DEEPEST = 32
# The integers that TOML guarantees.
_INTEGERS = range(-(2**63), 2**63)


def parse_toml(text: str, *, name: str, finite: bool = False) -> dict[str, Any]:
    """Parse the text of a file; raise Invalid with the file's name and the reason.

    With `finite`, reject infinity and NaN, because JSON lacks them.
    """
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{name} is not TOML: {error}") from None
    except ValueError:  # Python rejects numbers of more than 4,300 digits
        raise Invalid(f"{name} cannot be read: a number in it has too many digits") from None
    except RecursionError:
        raise Invalid(f"{name} cannot be read: {_TOO_DEEP}") from None
    _check(parsed, name, finite=finite)
    return parsed


_TOO_DEEP = f"lists and tables in it are more than {DEEPEST} levels deep"


def _check(parsed: dict[str, Any], name: str, *, finite: bool) -> None:
    """Reject integers that are too large and levels that are too deep, without recursion."""
    waiting: list[tuple[Any, int]] = [(parsed, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, int) and value not in _INTEGERS:
            raise Invalid(f"{name} cannot be read: a number in it has more than 64 bits")
        if finite and isinstance(value, float) and not isfinite(value):
            raise Invalid(f"{name} cannot be read: a number in it is {value}, expected a finite number")
        if not isinstance(value, dict | list):
            continue
        if depth > DEEPEST:
            raise Invalid(f"{name} cannot be read: {_TOO_DEEP}")
        inside = value.values() if isinstance(value, dict) else value
        waiting += ((each, depth + 1) for each in inside)
