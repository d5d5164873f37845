"""Reasons as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.words import GroupName


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why something cannot go on yet: `what` waits, for `reason`."""

    what: str
    reason: str
    group: GroupName | None = None  # the group whose events it waits for, if that is the cause
    stuck: bool = False  # nothing that is under way will change it: a person must
    room: bool = False  # it waits until a host has room for it
    outside: bool = False  # it waits for a report of those who work outside
    until: datetime | None = None  # from then on it no longer holds, also if it was not looked at again

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


def first_end(waiting: Iterable[Waiting]) -> datetime | None:
    """Return when the first of some reasons no longer holds, if that is known of any."""
    return min((wait.until for wait in waiting if wait.until is not None), default=None)
