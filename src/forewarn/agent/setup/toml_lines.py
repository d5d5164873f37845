"""On which line of a TOML text something stands: tomllib does not tell.

A line begins a statement if, and only if, all that stands before it is TOML by itself. So no line inside a
text of several lines is taken for a key.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, path: Path) -> int | None:
    """Find the line of a field, or else of the nearest thing around it; None if nothing of it is there."""
    places = dict(_places(text))
    for length in range(len(path), 0, -1):
        sought = path[:length]
        # A list of tables has no line of its own but that of its first, nor has a table that is only written
        # through what it holds.
        inside = (line for place, line in places.items() if place[:length] == sought)
        if found := places.get(sought) or next(inside, None):
            return found
    return None


def _places(text: str) -> Iterator[tuple[Path, int]]:
    lines = text.splitlines()
    around: Path = ()
    counted: Counter[Path] = Counter()
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
    except tomllib.TOMLDecodeError:
        return False
    return True


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _numbered(names: Path, counted: Counter[Path]) -> Path:
    """Put after the name of each list of tables which one of them is meant: the last so far."""
    path: list[str | int] = []
    for place, name in enumerate(names):
        path.append(name)
        if counted[names[: place + 1]]:
            path.append(counted[names[: place + 1]] - 1)
    return tuple(path)
