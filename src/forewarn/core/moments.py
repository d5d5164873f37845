"""Moments and spans of time as guests and people see them."""

from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)

_UNITS = (("d", 86400), ("h", 3600), ("m", 60))
# Beyond it the number itself says more: it is a slip of the finger.
_LONGEST = 1e10


def whole_second(moment: datetime) -> datetime:
    """Round up: NotBefore is shown in whole seconds, and what is shown is obeyed."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + SECOND


def format_span(span: timedelta | float) -> str:
    """Write a span of time, or a number of seconds, for people: `7 d`, `1 h 30 m`, `0.5 s`."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not 0 <= seconds < _LONGEST:
        return f"{seconds:g} s"
    said, left = [], seconds
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count:.0f} {unit}")
    if left or not said:
        said.append(f"{left:g} s")
    return " ".join(said)


def format_time(moment: datetime) -> str:
    """Write a moment for people."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
