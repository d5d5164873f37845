"""Moments as they are kept: whole microseconds since 1970, exact in both databases."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Turn a moment into what is kept of it; a naive one is refused, for nobody knows when it is."""
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone")
    return (at - _EPOCH) // _MICROSECOND


def moment(kept: int) -> datetime:
    """Turn what is kept into a moment."""
    return _EPOCH + timedelta(microseconds=kept)


def micros_or_none(at: datetime | None) -> int | None:
    """Turn a moment, if there is one, into what is kept of it."""
    return None if at is None else micros(at)


def moment_or_none(kept: int | None) -> datetime | None:
    """Turn what is kept, if anything is, into a moment."""
    return None if kept is None else moment(kept)
