"""Moments and spans of time as guests and people see them."""

import re
from datetime import datetime, timedelta
from math import isnan

SECOND = timedelta(seconds=1)

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
# Beyond it the number itself says more: it is a slip of the finger.
_LONGEST = 1e10

# From here on only whole seconds are written for people.
_WHOLE_FROM = 60

# How a span of time is written in settings, files and commands.
EXPECTED_SPAN = "expected a time such as 90, 15m, 1h30m or 7d"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(f"({_NUMBER})([smhd])")
SPAN = re.compile(f"(?:{_NUMBER}|(?:{_NUMBER}[smhd])+)")


def round_up_to_second(moment: datetime) -> datetime:
    """Round up: NotBefore is shown in whole seconds, and what is shown is obeyed."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + SECOND


def format_span(span: timedelta | float) -> str:
    """Write a span of time, or a number of seconds, for people: `7 d`, `1 h 30 m`, `0.5 s`."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not 0 <= seconds < _LONGEST:
        return f"{seconds:g} s"
    if seconds >= _WHOLE_FROM:
        seconds = round(seconds)
    return " ".join(f"{count:g} {unit}" for unit, count in _counted(seconds) if count) or "0 s"


def format_span_briefly(seconds: float) -> str:
    """Write the two largest units of a span of time for people, whichever way it goes: `14 m 32 s`."""
    counted = _counted(round(abs(seconds)))
    first = next((index for index, (_, count) in enumerate(counted) if count), len(counted))
    return " ".join(f"{count} {unit}" for unit, count in counted[first : first + 2] if count) or "0 s"


def format_offset(offset: timedelta) -> str:
    """Write how far one time is from another: `1 d 2 h ahead of`, `5 m behind`."""
    seconds = offset.total_seconds()
    return f"{format_span_briefly(seconds)} {'behind' if seconds < 0 else 'ahead of'}"


def span_literal(seconds: float) -> str:
    """Write a span of time as `parse_span` reads it: `1h30m`."""
    return "".join(f"{count}{unit}" for unit, count in _counted(round(seconds)) if count) or "0s"


def parse_span(written: object) -> timedelta:
    """Read `90`, `15m`, `1h30m` or `1.5h`; a bare number is seconds. ValueError says what was expected."""
    try:
        return timedelta(seconds=_seconds(written))
    except OverflowError:
        raise ValueError("expected a time that is not so long") from None


def _seconds(written: object) -> float:
    # True is an int to Python, but no time.
    if isinstance(written, int | float) and not isinstance(written, bool) and not isnan(written):
        return written
    text = written.strip() if isinstance(written, str) else ""
    if not SPAN.fullmatch(text):
        raise ValueError(EXPECTED_SPAN)
    if text[-1] not in _UNITS:
        return float(text)
    return sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text))


def _counted(seconds: float) -> list[tuple[str, float]]:
    """Divide a span of time into units, the largest first; what is left over is in seconds."""
    counted, left = [], seconds
    for unit, size in _UNITS.items():
        count, left = divmod(left, size) if size > 1 else (left, 0)
        counted.append((unit, count))
    return counted


def format_time(moment: datetime) -> str:
    """Write a moment for people."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
