"""Spans of time as people write them, in settings, files and commands alike: `90`, `15m`, `1h30m`, `1.5h`."""

import re
from datetime import timedelta
from math import isnan

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
EXPECTED = "expected a time such as 90, 15m, 1h30m or 7d"

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(f"({_NUMBER})([smhd])")
# Also shown to editors and in the API's schema.
PATTERN = f"(?:{_NUMBER}|(?:{_NUMBER}[smhd])+)"
_WHOLE = re.compile(PATTERN)


def parse_span(written: object) -> timedelta:
    """Read a span of time; a bare number is seconds. ValueError says what was expected."""
    try:
        return timedelta(seconds=_seconds(written))
    except OverflowError:
        raise ValueError("expected a time that is not so long") from None


def write_span(seconds: float) -> str:
    """Write a span of time as it is read: `1h30m`."""
    left, written = round(seconds), ""
    for unit, size in UNITS.items():
        count, left = divmod(left, size)
        written += f"{count}{unit}" if count else ""
    return written or "0s"


def _seconds(written: object) -> float:
    # True is an int to Python, but no time.
    if isinstance(written, int | float) and not isinstance(written, bool) and not isnan(written):
        return written
    text = written.strip() if isinstance(written, str) else ""
    if not _WHOLE.fullmatch(text):
        raise ValueError(EXPECTED)
    if text[-1] not in UNITS:
        return float(text)
    return sum(float(count) * UNITS[unit] for count, unit in _PART.findall(text))
