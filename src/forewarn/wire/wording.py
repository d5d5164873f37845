"""How refusals word what was written and what may stand there."""

import json
from collections.abc import Iterable, Mapping

from forewarn.core.spelling import closest

# What is longer is shown shortened.
LONGEST_SHOWN = 256
# A longer list of words is not read through.
_MANY = 10


def not_among(known: Iterable[str], value: object) -> str:
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
    return written if len(written) <= LONGEST_SHOWN else f"{written[:LONGEST_SHOWN]}…"
