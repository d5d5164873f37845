"""On which line of a TOML text something stands: tomllib does not tell.

A line begins a statement if, and only if, all that stands before it is TOML by itself. So no line inside a
text of several lines is taken for a key.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, path: KeyPath) -> int | None:
    """Find the line of a field, or else of the nearest thing around it; None if nothing of it is there."""
    lines = dict(_lines(text))
    for length in range(len(path), 0, -1):
        sought = path[:length]
        # A list of tables has no line of its own but that of its first, nor has a table that is only written
        # through what it holds.
        inside = (line for path, line in lines.items() if path[:length] == sought)
        if found := lines.get(sought) or next(inside, None):
            return found
    return None


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    lines = text.splitlines()
    around: KeyPath = ()
    counted: Counter[KeyPath] = Counter()
    for number, line in enumerate(lines):
        if not _is_whole("\n".join(lines[:number])):
            continue
        if (header := _HEADER.match(line)) and not _KEY.match(line):
            around = _parts(header[2])
            if header[1] == "[[":
                counted[around] += 1
            around = _numbered(around, counted)
            yield around, number + 1
        elif key := _KEY.match(line):
            yield (*around, *_parts(key[1])), number + 1


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _numbered(names: KeyPath, counted: Counter[KeyPath]) -> KeyPath:
    """Put after the name of each list of tables which one of them is meant: the last so far."""
    path: list[str | int] = []
    for index, name in enumerate(names):
        path.append(name)
        if counted[names[: index + 1]]:
            path.append(counted[names[: index + 1]] - 1)
    return tuple(path)
