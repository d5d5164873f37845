"""Format text for people: plurals, pairs, single lines, and suggestions for misspelled names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice

from forewarn.core.time_formats import format_span

# The typing errors that a name of some length may have: one for three letters, two for six.
LETTERS_FOR_A_SLIP = 3
MOST_SLIPS = 3
# Names are no longer than this; longer texts get no suggestion.
LONGEST_COMPARED = 64
# The work of one suggestion: how many names it looks at, and how many numbers and pairs of letters it
# compares. The limits keep it to a few milliseconds. Callers choose the text and often the known names too.
MOST_NAMES = 1_000
MOST_COMPARED = 5_000


def on_one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text)


def counted(count: int, what: str) -> str:
    """Format a count and its noun: `1 record`, `2 records`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def paired(values: Mapping[str, object]) -> str:
    """Format names and their values: `memory=2, vcpus=1`; `none` if there are none."""
    shown = {key: f"{each:g}" if isinstance(each, float) else f"{each}" for key, each in values.items()}
    return ", ".join(f"{key}={each}" for key, each in sorted(shown.items())) or "none"


def shown_value(value: object) -> str:
    """Format a value of a field: `none`, `true`, `15 m`, `memory=2`."""
    if isinstance(value, timedelta):
        return format_span(value)
    if isinstance(value, Mapping):
        return paired(value)
    if value is None or value == "":
        return "none"
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"


def truncated_list(names: Sequence[str], most: int) -> str:
    """Join the first names, and count the others: `a, b and 7 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def closest(written: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a misspelled one; None if none is similar.

    A number is never a misspelling of another: host-9 does not suggest host-4. The work is bounded, so a
    name that comes late among many similar names may not be found.
    """
    if len(written) > LONGEST_COMPARED:
        return None
    best: tuple[int, str] | None = None
    left = MOST_COMPARED
    folded = written.casefold()
    letters, numbers = set(folded), _numbers(written)
    for name in islice(known, MOST_NAMES):
        most = _allowed_slips(written, name)
        other = name.casefold()
        # One typing error adds at most one letter to one of them and removes one.
        if abs(len(folded) - len(other)) > most or len(letters ^ set(other)) > 2 * most:
            continue
        others = _numbers(name)
        left -= len(others)
        # A name with other numbers is another name, unless the text has none of them or fewer.
        if numbers == others or (numbers and len(numbers) != len(others)):
            slips, compared = _slips(folded, other, most=most)
            left -= compared
            if slips <= most:
                best = min(best or (slips, name), (slips, name))
        if left <= 0:
            break
    return None if best is None else best[1]


def hint(written: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for the end of an error message, or nothing if no name is similar."""
    meant = closest(written, known)
    return "" if meant is None else f"; did you mean {meant}?"


def _numbers(text: str) -> list[int]:
    # Names are short. A longer row of digits is an id, and too large for a number.
    return [int(digits) for digits in re.findall(r"[0-9]{1,100}", text)]


def _allowed_slips(written: str, name: str) -> int:
    longest = max(len(written), len(name))
    # Two names without a common letter are never similar.
    return min(longest - 1, max(longest // LETTERS_FOR_A_SLIP, 1), MOST_SLIPS)


def _slips(written: str, name: str, *, most: int) -> tuple[int, int]:
    """Count the letters that are missing, surplus, wrong, or swapped with the next.

    Stops with more than `most` as soon as there are more. Also returns how many pairs of letters it compared.
    """
    written, name = _where_they_differ(written, name)
    compared = 0
    before: list[int] = []
    row = list(range(len(name) + 1))
    for place, letter in enumerate(written, start=1):
        # Cells outside this band are above `most`.
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
    """Cut off the common prefix and the common suffix of two texts."""
    prefix = _common_prefix(one, other)
    one, other = one[prefix:], other[prefix:]
    suffix = _common_prefix(one[::-1], other[::-1])
    return one[: len(one) - suffix], other[: len(other) - suffix]


def _common_prefix(one: str, other: str) -> int:
    differing = (place for place, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    return next(differing, min(len(one), len(other)))
