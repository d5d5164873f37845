"""Suggestions for a name that does not exist."""

import difflib
import re
from collections.abc import Iterable


def closest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name that looks most like what was written; None if none does.

    A number is not mistyped for another one: host-9 was not meant to be host-4.
    """
    found = difflib.get_close_matches(
        written, [name for name in known if not _differs_in_number(written, name)], n=1
    )
    return found[0] if found else None


def hint(written: str, known: Iterable[str]) -> str:
    """Ask `; did you mean …?` at the end of a refusal, if there is something to ask."""
    meant = closest(written, known)
    return "" if meant is None else f"; did you mean {meant}?"


def _differs_in_number(written: str, name: str) -> bool:
    """Return whether a name has as many numbers as what was written, but other ones."""
    mine, others = _numbers(written), _numbers(name)
    return len(mine) == len(others) and mine != others


def _numbers(text: str) -> list[int]:
    # Names are short; a longer row of digits is an id of some kind, and too much for a number.
    return [int(digits) for digits in re.findall(r"[0-9]{1,100}", text)]
