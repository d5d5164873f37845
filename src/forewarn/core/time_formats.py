"""Parse and format times and spans of time."""

import re
from datetime import datetime, timedelta
from math import isnan

SECOND = timedelta(seconds=1)

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
# Longer spans are typing errors; they are shown as a plain number of seconds.
_LONGEST = 1e10

# Spans of at least this many seconds are rounded to whole seconds for people.
_WHOLE_FROM = 60

# The syntax of a span of time in settings, files and commands.
EXPECTED_SPAN = "expected a time such as 90, 15m, 1h30m or 7d"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(f"({_NUMBER})([smhd])")
SPAN = re.compile(f"(?:{_NUMBER}|(?:{_NUMBER}[smhd])+)")


def round_up_to_second(moment: datetime) -> datetime:
    """Round up to a whole second.

    Guests see NotBefore in whole seconds, and forewarn obeys the time that they see.
    """
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + SECOND


def format_span(span: timedelta | float) -> str:
    """Format a span of time, or a number of seconds, for people: `7 d`, `1 h 30 m`, `0.5 s`."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not 0 <= seconds < _LONGEST:
        return f"{seconds:g} s"
    if seconds >= _WHOLE_FROM:
        seconds = round(seconds)
    return " ".join(f"{count:g} {unit}" for unit, count in _split_units(seconds) if count) or "0 s"


def format_span_briefly(seconds: float) -> str:
    """Format the two largest units of a span of time for people, without its sign: `14 m 32 s`."""
    counted = _split_units(round(abs(seconds)))
    first = next((index for index, (_, count) in enumerate(counted) if count), len(counted))
    return " ".join(f"{count} {unit}" for unit, count in counted[first : first + 2] if count) or "0 s"


def format_offset(offset: timedelta) -> str:
    """Format how far one time is from another: `1 d 2 h ahead of`, `5 m behind`."""
    seconds = offset.total_seconds()
    return f"{format_span_briefly(seconds)} {'behind' if seconds < 0 else 'ahead of'}"


def span_literal(seconds: float) -> str:
    """Format a span of time in the syntax of `parse_span`: `1h30m`."""
    return "".join(f"{count}{unit}" for unit, count in _split_units(round(seconds)) if count) or "0s"


def parse_span(written: object) -> timedelta:
    """Parse `90`, `15m`, `1h30m` or `1.5h`; a bare number is in seconds.

    The message of a ValueError says what was expected.
    """
    try:
        return timedelta(seconds=_seconds(written))
    except OverflowError:
        raise ValueError("expected a shorter time") from None


def _seconds(written: object) -> float:
    # In Python, True is an int.
    if isinstance(written, int | float) and not isinstance(written, bool) and not isnan(written):
        return written
    text = written.strip() if isinstance(written, str) else ""
    if not SPAN.fullmatch(text):
        raise ValueError(EXPECTED_SPAN)
    if text[-1] not in _UNITS:
        return float(text)
    return sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text))


def _split_units(seconds: float) -> list[tuple[str, float]]:
    """Split a span of time into units, the largest first; the remainder is in seconds."""
    counted, left = [], seconds
    for unit, size in _UNITS.items():
        count, left = divmod(left, size) if size > 1 else (left, 0)
        counted.append((unit, count))
    return counted


def format_time(moment: datetime) -> str:
    """Format a time for people."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
