"""Words as they are written: one or several of something, and suggestions for a name that does not exist."""

import re
from collections.abc import Iterable

# How many slips a name of some length may have: of three letters one, of six two.
LETTERS_FOR_A_SLIP = 3
MOST_SLIPS = 3


def counted(count: int, what: str) -> str:
    """Write how many there are of something: `1 record`, `2 records`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def closest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name that was mistyped as what was written; None if that is like none.

    A number is not mistyped for another one: host-9 was not meant to be host-4.
    """
    near = [
        (slips, name)
        for name in known
        if not _differs_in_number(written, name)
        and (slips := _slips(written.casefold(), name.casefold())) <= _allowed(written, name)
    ]
    return min(near, default=(0, None))[1]


def hint(written: str, known: Iterable[str]) -> str:
    """Ask `; did you mean …?` at the end of a refusal, if there is something to ask."""
    meant = closest(written, known)
    return "" if meant is None else f"; did you mean {meant}?"


def _differs_in_number(written: str, name: str) -> bool:
    """Return whether a name has other numbers than what was written: as many of them, or any at all."""
    mine, others = _numbers(written), _numbers(name)
    return mine != others and (not mine or len(mine) == len(others))


def _numbers(text: str) -> list[int]:
    # Names are short; a longer row of digits is an id of some kind, and too much for a number.
    return [int(digits) for digits in re.findall(r"[0-9]{1,100}", text)]


def _allowed(written: str, name: str) -> int:
    longest = max(len(written), len(name))
    # Of two names that have no letter in common neither is mistyped for the other.
    return min(longest - 1, max(longest // LETTERS_FOR_A_SLIP, 1), MOST_SLIPS)


def _slips(written: str, name: str) -> int:
    """Count the letters that are missing, too many, wrong, or exchanged with the next."""
    if abs(len(written) - len(name)) > MOST_SLIPS:
        return MOST_SLIPS + 1
    before: list[int] = []
    row = list(range(len(name) + 1))
    for place, letter in enumerate(written, start=1):
        before, above, row = row, before, [place]
        for other, wanted in enumerate(name, start=1):
            least = min(before[other] + 1, row[-1] + 1, before[other - 1] + (letter != wanted))
            if place > 1 and other > 1 and (letter, written[place - 2]) == (name[other - 2], wanted):
                least = min(least, above[other - 2] + 1)
            row.append(least)
    return row[-1]
