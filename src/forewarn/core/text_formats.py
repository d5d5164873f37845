"""Words as they are written: counts, pairs, texts on one line, suggestions for a name that does not exist."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

# How many slips a name of some length may have: of three letters one, of six two.
LETTERS_FOR_A_SLIP = 3
MOST_SLIPS = 3
# Names are no longer than this; longer texts are compared with nothing.
LONGEST_COMPARED = 64
# The names that one hint looks at, and the numbers and pairs of letters that it compares. They bound its
# time to a few milliseconds: a caller chooses what is written, and often the known names, too.
MOST_NAMES = 1_000
MOST_COMPARED = 5_000


def on_one_line(text: str) -> str:
    """Put spaces for what would begin another line, or what a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text)


def counted(count: int, what: str) -> str:
    """Write how many there are of something: `1 record`, `2 records`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def paired(values: Mapping[str, object]) -> str:
    """Write names and what they stand for: `memory=2, vcpus=1`; `none` if there are none."""
    shown = {key: f"{each:g}" if isinstance(each, float) else f"{each}" for key, each in values.items()}
    return ", ".join(f"{key}={each}" for key, each in sorted(shown.items())) or "none"


def closest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name that was mistyped as what was written; None if that is like none.

    A number is not mistyped for another one: host-9 was not meant to be host-4. The work is bounded, whatever
    the names are: a name that comes late among many similar ones may not be found.
    """
    if len(written) > LONGEST_COMPARED:
        return None
    best: tuple[int, str] | None = None
    left = MOST_COMPARED
    folded = written.casefold()
    letters, numbers = set(folded), _numbers(written)
    for name in islice(known, MOST_NAMES):
        most = _allowed(written, name)
        other = name.casefold()
        # A slip adds a letter to one of them at most, and takes one away.
        if abs(len(folded) - len(other)) > most or len(letters ^ set(other)) > 2 * most:
            continue
        others = _numbers(name)
        left -= len(others)
        if not _differ(numbers, others):
            slips, compared = _slips(folded, other, most=most)
            left -= compared
            if slips <= most:
                best = min(best or (slips, name), (slips, name))
        if left <= 0:
            break
    return None if best is None else best[1]


def hint(written: str, known: Iterable[str]) -> str:
    """Ask `; did you mean …?` at the end of a refusal, if there is something to ask."""
    meant = closest(written, known)
    return "" if meant is None else f"; did you mean {meant}?"


def _differ(mine: list[int], others: list[int]) -> bool:
    """Return whether a name has other numbers than what was written: as many of them, or any at all."""
    return mine != others and (not mine or len(mine) == len(others))


def _numbers(text: str) -> list[int]:
    # Names are short; a longer row of digits is an id of some kind, and too much for a number.
    return [int(digits) for digits in re.findall(r"[0-9]{1,100}", text)]


def _allowed(written: str, name: str) -> int:
    longest = max(len(written), len(name))
    # Of two names that have no letter in common neither is mistyped for the other.
    return min(longest - 1, max(longest // LETTERS_FOR_A_SLIP, 1), MOST_SLIPS)


def _slips(written: str, name: str, *, most: int) -> tuple[int, int]:
    """Count the letters that are missing, too many, wrong, or exchanged with the next.

    Returns more than `most` as soon as it is more; and how many pairs of letters were compared.
    """
    written, name = _where_they_differ(written, name)
    compared = 0
    before: list[int] = []
    row = list(range(len(name) + 1))
    for place, letter in enumerate(written, start=1):
        # Beyond this band there are more slips than that.
        first, last = max(1, place - most), min(len(name), place + most)
        before, above, row = row, before, [most + 1] * (len(name) + 1)
        row[0] = place
        for other in range(first, last + 1):
            wanted = name[other - 1]
            least = min(before[other] + 1, row[other - 1] + 1, before[other - 1] + (letter != wanted))
            if place > 1 and other > 1 and (letter, written[place - 2]) == (name[other - 2], wanted):
                least = min(least, above[other - 2] + 1)
            row[other] = least
        compared += max(0, last + 1 - first)
        if min(row) > most:
            break
    return row[-1], compared


def _where_they_differ(one: str, other: str) -> tuple[str, str]:
    """Leave out how two texts begin and end alike."""
    begin = _alike(one, other)
    one, other = one[begin:], other[begin:]
    end = _alike(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _alike(one: str, other: str) -> int:
    """Count the letters with which two texts begin alike."""
    differing = (place for place, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    return next(differing, min(len(one), len(other)))
