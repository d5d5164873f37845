"""Moments as guests and people see them: in whole seconds."""

from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)


def whole_second(moment: datetime) -> datetime:
    """Round up: NotBefore is shown in whole seconds, and what is shown is obeyed."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + SECOND


def stamp(moment: datetime) -> str:
    """Write a moment for people."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
