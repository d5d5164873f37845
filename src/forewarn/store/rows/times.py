"""Moments as they are stored: whole microseconds since 1970, exact in both databases."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return the microseconds of a moment; ValueError if it has no time zone."""
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone")
    return (at - _EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """Return the moment of microseconds."""
    return _EPOCH + timedelta(microseconds=count)


def micros_or_none(at: datetime | None) -> int | None:
    """Return the microseconds of a moment, if there is one."""
    return None if at is None else micros(at)


def moment_or_none(count: int | None) -> datetime | None:
    """Return the moment of microseconds, if there are any."""
    return None if count is None else moment(count)
